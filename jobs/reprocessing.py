"""A job for each group that reprocesses a stream of it: rehearse, replace, undo, or a what-if."""

import enum
from contextlib import AbstractContextManager, nullcontext
from datetime import date, timedelta

import dagster as dg
from pydantic import Field

from jobs.names import days_pool, stem, table_key
from jobs.reprocessing_report import of_run, of_table
from jobs.run_config import DayText, RecomputeConfig
from resources.settings import SettingsResource
from resources.spark import SparkResource
from rivermark.backfill import recompute as ways
from rivermark.backfill.downstream_runs import follow_up, named_follow_ups, promised
from rivermark.backfill.result import Reprocessing
from rivermark.backfill.undo import undo
from rivermark.backfill.wait_until_closed import wait_until_closed
from rivermark.backfill.what_if import what_if
from rivermark.lake.lake import Lake
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import Stream
from rivermark.model.table import days_between
from rivermark.model.topology import Topology
from rivermark.runtime.query.recompute import recomputable
from rivermark.settings import Settings

TAGS = {"dagster/max_runtime": str(6 * 3600)}


class Way(enum.Enum):
    """What is done with the computed days."""

    rehearse = "rehearse"
    replace = "replace"
    undo = "undo"
    what_if = "what_if"


class ReprocessConfig(RecomputeConfig):
    """Which days of which stream, and what becomes of them."""

    stream: str = Field(description="A derived stream of the group, such as taxi/driver_tips.")
    first: DayText = Field(
        default="", description="First day, like 2020-01-01; for all but an undo."
    )
    last: DayText = Field(default="", description="Last day. Empty: the first one.")
    way: Way = Field(
        default=Way.rehearse,
        description="rehearse and what_if only compare; replace publishes; undo brings days back.",
    )
    undo: str = Field(default="", description="For an undo: the id of the reprocessing.")
    what_if: dict[str, str] = Field(
        default={},
        description="For a what_if: declared parameters by name, or build: module:function.",
    )
    follow_ups: bool = Field(
        default=False, description="After a replace or undo: also the streams downstream."
    )
    wait_minutes: float = Field(
        default=0, ge=0, le=1440, description="How long to wait for days to be closed."
    )


def reprocess_job_name(group: str) -> str:
    """The job that reprocesses days of a group's tables."""
    return f"{stem(group)}_reprocess"


def reprocess_jobs(topology: Topology) -> list[dg.JobDefinition]:
    """A job for each group that has tables by days."""
    groups = topology.groups().items()
    return [
        reprocess_job(topology, group)
        for group, streams in groups
        if any(recomputable(stream) for stream in streams)
    ]


def reprocess_job(topology: Topology, group: str) -> dg.JobDefinition:
    """One run is one reprocessing of one stream, and of what follows from it."""
    mine = {s.name: s for s in topology.groups()[group] if isinstance(s, Stream)}

    @dg.op(
        name=f"reprocess_{stem(group)}",
        description="Computes closed days again and compares, replaces, or brings them back.",
        pool=days_pool(group),
    )
    def reprocess_days(
        context: dg.OpExecutionContext,
        config: ReprocessConfig,
        platform: SettingsResource,
        spark: SparkResource,
    ) -> None:
        settings = platform.settings()
        try:
            if config.stream not in mine:
                known = ", ".join(sorted(mine))
                raise RivermarkError(f"no stream of this group is named {config.stream!r}: {known}")
            with _promised(context, topology, config, settings.lake(), mine[config.stream]):
                done = _done(context, config, settings, spark, mine[config.stream])
                context.add_output_metadata({**of_run(done)})
                tell(context, topology, done, settings.lake())
                if done.kind in ("replaced", "undone"):
                    _follow(context, topology, config, settings, spark, done)
        except RivermarkError as error:
            raise dg.Failure(
                description=str(error),
                metadata={"error": type(error).__name__},
                allow_retries=False,
            ) from error

    @dg.job(
        name=reprocess_job_name(group),
        description=f"Closed days of a stream of '{group}': rehearsed, replaced, undone, what-if.",
        tags=TAGS,
    )
    def reprocessing() -> None:
        reprocess_days()

    return reprocessing


def _promised(
    context: dg.OpExecutionContext,
    topology: Topology,
    config: ReprocessConfig,
    lake: Lake,
    stream: Stream,
) -> AbstractContextManager[None]:
    """A replacement that is to be followed up is written down as one, should it be broken off."""
    if not (config.follow_ups and config.way is Way.replace and config.first):
        return nullcontext()
    first, last = (date.fromisoformat(day) for day in (config.first, config.last or config.first))
    days = days_between(first, last)
    return promised(lake, topology, stream, days, context.run.run_id)


def _done(
    context: dg.OpExecutionContext,
    config: ReprocessConfig,
    settings: Settings,
    spark: SparkResource,
    stream: Stream,
) -> Reprocessing:
    """What the config asks for; an undo starts no engine."""
    if config.way is Way.undo:
        return undo(settings, stream, config.undo, run_id=context.run.run_id)
    if not config.first:
        raise RivermarkError("which days? give first: 2020-01-01 (and last)")
    order = ways.Order(
        stream=stream,
        first=date.fromisoformat(config.first),
        last=date.fromisoformat(config.last or config.first),
        as_of=config.pinned(),
        run_id=context.run.run_id,
        on_step=context.log.info,
    )
    wait_until_closed(
        settings.lake(),
        stream,
        order.last,
        at_most=timedelta(minutes=config.wait_minutes),
        on_step=context.log.info,
    )
    session = spark.spark_session
    if config.way is Way.what_if:
        return what_if(session, settings, order, config.what_if)
    way = ways.replace if config.way is Way.replace else ways.rehearse
    return way(session, settings, order)


def _follow(
    context: dg.OpExecutionContext,
    topology: Topology,
    config: ReprocessConfig,
    settings: Settings,
    spark: SparkResource,
    cause: Reprocessing,
) -> None:
    """Compute what lies downstream, or name it."""
    names = named_follow_ups(topology, cause)
    if not names:
        return
    if not config.follow_ups:
        context.log.warning(f"downstream, and not computed again: {', '.join(names)}")
        return
    followed = follow_up(
        spark.spark_session,
        settings,
        topology,
        cause,
        run_id=context.run.run_id,
        on_step=context.log.info,
        on_done=lambda done: tell(context, topology, done, settings.lake()),
    )
    for name, reason in followed.left.items():
        context.log.warning(f"not followed up: {name}: {reason}")


def tell(
    context: dg.OpExecutionContext, topology: Topology, done: Reprocessing, lake: Lake
) -> None:
    """Report at each table: days that were replaced as materialized, others as looked at."""
    for name, outcome in done.tables.items():
        table = topology.table(name)
        told = of_table(done, table, lake)
        if outcome.version_after is None:
            context.log_event(dg.AssetObservation(table_key(table), metadata={**told}))
            continue
        for day in days_between(done.first, done.last):
            context.log_event(
                dg.AssetMaterialization(
                    table_key(table), partition=day.isoformat(), metadata={**told}
                )
            )
