"""Savepoints and forks as runs: each verb of the console, with the functions behind it."""

import enum
import threading
from typing import Final

import dagster as dg
from pydantic import Field, model_validator

from rivermark.backfill.difference import KINDS
from rivermark.backfill.fork_comparison import compare_fork
from rivermark.dagster.jobs import metadata
from rivermark.dagster.jobs.backfill import failing_step
from rivermark.dagster.jobs.names import prefixed, table_key
from rivermark.dagster.jobs.run_config import DayText, optional_day
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.resources.spark import SparkResource
from rivermark.model.errors import RivermarkError
from rivermark.model.topology import Topology
from rivermark.monitor.savepoints import verify
from rivermark.runtime.savepoint.fork import (
    drop,
    fork,
    fork_named,
    forked,
    promote,
    stands_on,
    with_forks,
)
from rivermark.runtime.savepoint.rescale import check_rescalable, rescale
from rivermark.runtime.savepoint.resume import Order, resume
from rivermark.runtime.savepoint.store import delete, savepoint, stop_and_take, take
from rivermark.runtime.savepoint.upgrade import upgrade
from rivermark.runtime.supervision.hosting import Hosting


class Way(enum.Enum):
    """The verb, as on the console."""

    take = "take"
    stop_and_take = "stop_and_take"
    verify = "verify"
    delete = "delete"
    resume = "resume"
    upgrade = "upgrade"
    rescale = "rescale"
    fork = "fork"
    run_fork = "run_fork"
    compare_fork = "compare_fork"
    promote_fork = "promote_fork"
    drop_fork = "drop_fork"


NEEDS: Final = {
    **dict.fromkeys((Way.take, Way.stop_and_take, Way.upgrade), ("stream",)),
    **dict.fromkeys((Way.verify, Way.delete, Way.resume), ("stream", "savepoint")),
    Way.rescale: ("stream", "partitions"),
    Way.fork: ("stream", "savepoint", "fork"),
    **dict.fromkeys((Way.run_fork, Way.compare_fork, Way.promote_fork, Way.drop_fork), ("fork",)),
}
"""The fields that each way must have."""
TAKES: Final = {
    Way.resume: ("reset_readers",),
    Way.promote_fork: ("reset_readers",),
    Way.fork: ("accept",),
    Way.compare_fork: ("first", "last"),
}
"""The fields that it may have besides."""


class SavepointConfig(dg.Config):
    """The verb, and what it is done with; a field that does not apply is refused."""

    way: Way = Field(
        default=Way.take,
        description="take: a running stream goes on. stop_and_take: its group is paused first. "
        "verify reads every file. resume: the stream goes back. upgrade: it goes "
        "on with the code as it is now, or is put back. rescale: its state gets another number of "
        "partitions. fork: it runs from there beside the living one, until it "
        "is promoted into its place or dropped.",
    )
    stream: str = Field(default="", description="The name of a stream, such as taxi/driver_tips.")
    savepoint: str = Field(default="", description="The id of a savepoint, or latest.")
    fork: str = Field(default="", description="The name of a fork, such as faster.")
    accept: bool = Field(
        default=False, description="fork: take the state as made by what is declared now."
    )
    reset_readers: bool = Field(
        default=False,
        description="resume, promote_fork: start streams over that have read rows which go.",
    )
    partitions: int = Field(default=0, ge=0, description="rescale: the number of partitions.")
    first: DayText = Field(default="", description="compare_fork: a day. Empty: all finished.")
    last: DayText = Field(default="", description="compare_fork: the last day. Empty: the first.")

    @model_validator(mode="after")
    def _fitting(self) -> "SavepointConfig":
        needs, takes = NEEDS[self.way], TAKES.get(self.way, ())
        for name in type(self).model_fields:
            if name in needs and not getattr(self, name):
                raise ValueError(f"{self.way.value}: give the {name}")
            if name not in ("way", *needs, *takes) and getattr(self, name):
                raise ValueError(f"{name} does not go with way {self.way.value}: leave it out")
        return self


def savepoint_job(topology: Topology) -> dg.JobDefinition:
    """Keeps a stream at a batch, lets it go back there, or runs another one from there."""

    @dg.op(name=prefixed("keep_or_go_back"), description="Savepoints and forks, by the verb.")
    def act(
        context: dg.OpExecutionContext,
        config: SavepointConfig,
        rivermark_settings: SettingsResource,
        rivermark_spark: SparkResource,
    ) -> None:
        settings, way, name = rivermark_settings.settings(), config.way, config.fork
        lake = settings.lake()
        order = Order(
            settings=settings,
            topology=with_forks(lake, topology),
            run_id=context.run.run_id,
            reset_readers=config.reset_readers,
            on_step=context.log.info,
        )
        shown: metadata.Metadata = {metadata.MODE: dg.MetadataValue.text(way.value)}
        with failing_step():
            stream = (
                topology.named(config.stream)
                if config.stream
                else fork_named(lake, topology, name)[1]
            )
            kept = savepoint(lake, stream.name, config.savepoint) if config.savepoint else None
            if way is Way.take:
                kept = take(settings, stream, on_step=order.on_step)
            elif way is Way.stop_and_take:
                by = context.run.tags.get("user", "Dagster")
                kept = stop_and_take(
                    settings, stream, run_id=order.run_id, by=by, on_step=order.on_step
                )
            elif way is Way.verify and kept and (faults := verify(settings, stream, kept.id)):
                raise RivermarkError("; ".join(faults))
            elif way is Way.delete and kept:
                delete(lake, stream.name, kept.id, stands_on(lake))
            elif way is Way.resume and kept:
                resume(order, stream, kept.id)
            elif way is Way.upgrade:
                hosting = Hosting(
                    settings=settings,
                    topology=topology,
                    streams=[stream],
                    run_id=order.run_id,
                    continuous=False,
                )
                rivermark_spark.for_run(hosting.session_kind())
                by = context.run.tags.get("user", "Dagster")
                done = upgrade(order, stream, rivermark_spark.spark_session, by=by)
                shown["savepoint"] = dg.MetadataValue.text(done.savepoint)
                shown["batches"] = dg.MetadataValue.int(done.batches)
            elif way is Way.rescale:
                check_rescalable(settings, stream, config.partitions)
                spark = rivermark_spark.spark_session
                other = rescale(order, stream, spark, config.partitions)
                shown["savepoint"] = dg.MetadataValue.text(other.savepoint)
                entries = sum(count for count, _ in other.state.values())
                shown["entries of state"] = dg.MetadataValue.int(entries)
            elif way is Way.fork and kept:
                fork(order, stream, name, kept.id, accept=config.accept)
            elif way is Way.run_fork:
                hosting = Hosting(
                    settings=settings,
                    topology=with_forks(lake, topology),
                    streams=[forked(fork_named(lake, topology, name)[1], name)],
                    run_id=order.run_id,
                    continuous=False,
                )
                rivermark_spark.for_run(hosting.session_kind())
                hosting.run(rivermark_spark.spark_session, threading.Event())
            elif way is Way.compare_fork:
                days = optional_day(config.first), optional_day(config.last)
                compared = compare_fork(
                    settings, topology, name, *days, spark=lambda: rivermark_spark.spark_session
                )
                rows = [
                    [table, *(f"{n:,}" for n in each.counts().values())]
                    for table, each in compared.items()
                ]
                text = metadata.markdown(["table", *KINDS], rows, right=KINDS)
                shown["tables"] = dg.MetadataValue.md(text)
            elif way is Way.promote_fork:
                promote(order, name)
            elif way is Way.drop_fork:
                drop(order, name)
        if kept is not None:
            shown["savepoint"] = dg.MetadataValue.text(kept.id)
            shown["batch"] = dg.MetadataValue.int(kept.batch)
        context.log_event(dg.AssetObservation(table_key(stream.tables[0]), metadata=shown))
        context.add_output_metadata(shown)

    @dg.job(
        executor_def=dg.in_process_executor,
        name=prefixed("savepoint"),
        description="A stream kept at a batch, put back there, or run from there as a fork.",
        tags={"dagster/max_runtime": "14400"},
    )
    def acting() -> None:
        act()

    return acting
