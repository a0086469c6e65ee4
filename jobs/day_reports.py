"""Days that streams have finished, reported to Dagster again: to a new instance, or after a wipe.

A stream reports each day once, and notes so in the platform's state. An instance that has lost the
reports would show the days as missing, and computing them again only to see them would be waste.
"""

from collections.abc import Sequence

import dagster as dg
from pydantic import Field

from jobs import metadata
from jobs.names import by_days, table_key
from jobs.run_config import DayText, optional_day
from resources.settings import SettingsResource
from rivermark.backfill.finished_days import finished_days
from rivermark.model.errors import UnknownStream
from rivermark.model.stream import Stream
from rivermark.model.table import Table
from rivermark.model.topology import Topology


class ReportDaysConfig(dg.Config):
    """The tables whose days are reported, and which of their days."""

    tables: list[str] = Field(default=[], description="Names of tables. Empty: all by days.")
    first: DayText = Field(default="", description="The first day. Empty: that of the table.")
    last: DayText = Field(default="", description="The last day. Empty: the last finished one.")


def report_days_job(topology: Topology) -> dg.JobDefinition:
    """One run reports what Dagster lacks; it computes nothing and starts no JVM."""

    @dg.op(
        name="report_days_again",
        description="Reports finished days of which the instance has no materialization.",
    )
    def report(
        context: dg.OpExecutionContext, config: ReportDaysConfig, platform: SettingsResource
    ) -> None:
        first, last = optional_day(config.first), optional_day(config.last)
        total = 0
        for stream, table in _chosen(topology, config.tables):
            key = table_key(table)
            known = context.instance.get_materialized_partitions(key)
            wanted = [
                day.isoformat()
                for day in finished_days(platform.settings(), stream, table)
                if (first is None or day >= first) and (last is None or day <= last)
            ]
            missing = [day for day in wanted if day not in known]
            shown = {metadata.MODE: dg.MetadataValue.text("reported again")}
            for day in missing:
                context.log_event(dg.AssetMaterialization(key, partition=day, metadata=shown))
            context.log.info(f"{table.name}: {len(missing):,} of {len(wanted):,} days reported")
            total += len(missing)
        context.add_output_metadata({"days": total})

    @dg.job(
        name="report_days",
        description=(
            "Reports finished days again that Dagster does not know: for a new instance, or after "
            "a table's asset was wiped. Nothing is computed."
        ),
        tags={"dagster/max_runtime": "3600"},
    )
    def reporting() -> None:
        report()

    return reporting


def _chosen(topology: Topology, names: Sequence[str]) -> list[tuple[Stream, Table]]:
    """The tables by days of those names, all without one; UnknownStream for another name."""
    daily = {
        table.name: (stream, table)
        for stream in topology.streams
        for table in stream.tables
        if isinstance(stream, Stream) and by_days(stream, table)
    }
    for name in names:
        if name not in daily:
            known = ", ".join(sorted(daily))
            raise UnknownStream(f"no table by days is named {name!r}; there are: {known}")
    return [daily[name] for name in names or daily]
