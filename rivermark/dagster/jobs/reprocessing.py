"""A job for each group that reprocesses a stream of it: rehearse, replace, undo, or a what-if."""

import enum
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Literal

import dagster as dg
from pydantic import Field, create_model

from rivermark.backfill.reprocess import Request, reprocess
from rivermark.backfill.result import Reprocessing
from rivermark.dagster.jobs.backfill import backfill_context, failing_step
from rivermark.dagster.jobs.day_results import day_results
from rivermark.dagster.jobs.event_batch import store_materializations
from rivermark.dagster.jobs.names import days_pool, stem, table_key
from rivermark.dagster.jobs.reprocessing_report import of_days, of_run, of_table
from rivermark.dagster.jobs.run_config import DayText, RecomputeConfig, optional_day
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.resources.spark import SparkResource
from rivermark.lake.lake import Lake
from rivermark.model.stream import Stream
from rivermark.model.topology import Topology
from rivermark.runtime.query.recompute import recomputable

TAGS = {"dagster/max_runtime": str(6 * 3600)}


class Way(enum.Enum):
    """The end of a reprocessing: compare, stage or publish."""

    rehearse = "rehearse"
    replace = "replace"
    undo = "undo"
    what_if = "what_if"


class ReprocessConfig(RecomputeConfig):
    """Days of a stream to compute again, and the end that it takes."""

    stream: str = Field(description="A derived stream of the group, such as taxi/driver_tips.")
    first: DayText = Field(
        default="", description="First day, like 2020-01-01; not for an undo, which knows its days."
    )
    last: DayText = Field(default="", description="Last day. Empty: the first one.")
    way: Way = Field(
        default=Way.rehearse,
        description="rehearse and what_if only compare; replace publishes; undo restores days.",
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

    def request(self, stream: Stream) -> Request:
        """The configuration as the library takes it."""
        return Request(
            stream=stream,
            way=self.way.value,
            first=optional_day(self.first),
            last=optional_day(self.last),
            as_of=self.pinned(),
            undo_id=self.undo,
            parameters=self.what_if,
            follow_ups=self.follow_ups,
            wait=timedelta(minutes=self.wait_minutes),
        )


def config_of(streams: Iterable[str]) -> type[ReprocessConfig]:
    """The configuration of a group: its launchpad offers the streams that there are."""
    offered: Any = Literal[tuple(sorted(streams))]
    described = Field(description="A derived stream of the group.")
    return create_model("ReprocessConfig", __base__=ReprocessConfig, stream=(offered, described))


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
    derived = {s.name: s for s in topology.groups()[group] if isinstance(s, Stream)}

    def reprocess_days(
        context: dg.OpExecutionContext,
        config: ReprocessConfig,
        rivermark_settings: SettingsResource,
        rivermark_spark: SparkResource,
    ) -> None:
        lake = rivermark_settings.settings().lake()

        def report(done: Reprocessing) -> None:
            if done.stream == config.stream:
                context.add_output_metadata({**of_run(done)})
            log_events(context, topology, done, lake)
            written = [topology.table(n) for n, o in done.tables.items() if o.version_after]
            stream = topology.named(done.stream)
            if written and isinstance(stream, Stream):
                settings = rivermark_settings.settings()
                for result in day_results(
                    settings, topology, stream, written, done.first, done.last
                ):
                    # Taken by Dagster, though the context of an op does not declare it.
                    context.log_event(result)  # type: ignore[arg-type]

        with failing_step():
            outcome = reprocess(
                backfill_context(context, topology, rivermark_settings, rivermark_spark, report),
                config.request(derived[config.stream]),
            )
        if outcome.behind:
            behind = ", ".join(outcome.behind)
            context.log.warning(f"downstream, and not recomputed: {behind}")
        for name, reason in outcome.left.items():
            context.log.warning(f"not followed up: {name}: {reason}")

    # Made for the group, so that no type checker knows it.
    reprocess_days.__annotations__["config"] = config_of(derived)
    reprocess_op = dg.op(
        name=f"reprocess_{stem(group)}",
        description="Recomputes closed days and compares, replaces, or restores them.",
        pool=days_pool(group),
    )(reprocess_days)

    @dg.job(
        executor_def=dg.in_process_executor,
        name=reprocess_job_name(group),
        description=f"Closed days of a stream of '{group}': rehearsed, replaced, undone, what-if.",
        tags=TAGS,
    )
    def reprocessing() -> None:
        reprocess_op()

    return reprocessing


def log_events(
    context: dg.OpExecutionContext, topology: Topology, done: Reprocessing, lake: Lake
) -> None:
    """Report at each table: replaced days as materializations, others as one observation."""
    for name, outcome in done.tables.items():
        table = topology.table(name)
        if outcome.version_after is None:
            report = of_table(done, table, lake)
            context.log_event(dg.AssetObservation(table_key(table), metadata={**report}))
            continue
        events = [
            dg.AssetMaterialization(table_key(table), partition=str(day), metadata={**shown})
            for day, shown in of_days(done, table, lake).items()
        ]
        store_materializations(context.instance, events, context)
