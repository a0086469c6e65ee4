"""Days that streams have finished, reported to Dagster as partitions with their own numbers.

What is reported is what Dagster does not know of them: a stream's progress lies in the platform's
state, and what was reported to an instance in the instance. So a new instance learns of what the
console did, and one whose assets were wiped learns of them again.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from typing import Final

import dagster as dg
from pydantic import Field

from rivermark.backfill.finished_days import finished_days, rows_by_day
from rivermark.dagster.jobs import metadata
from rivermark.dagster.jobs.event_batch import store_materializations
from rivermark.dagster.jobs.names import by_days, prefixed, table_key
from rivermark.dagster.jobs.run_config import DayText, optional_day
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.lake.time_travel import resolve_version
from rivermark.model.errors import UnknownStream
from rivermark.model.stream import AnyStream, Stream
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.settings import Settings

AT_ONCE: Final = 500
"""Days that are reported between two heartbeats of a run, or in a tick: about half a second."""
LONGEST_GAP: Final = 31
"""Days without rows in a row that are reported as empty. Of more, which no stream works on each
day, none is: the job `report_days` reports them where they are wanted."""


def daily_tables(topology: Topology) -> list[tuple[Stream, Table]]:
    """The tables by days, with the streams that write them."""
    return [
        (stream, table)
        for stream in topology.streams
        for table in stream.tables
        if by_days(stream, table)
    ]


def unreported_days(
    instance: dg.DagsterInstance, settings: Settings, stream: Stream, table: Table
) -> list[date]:
    """The finished days of a table that the instance does not know, oldest first."""
    known = instance.get_materialized_partitions(table_key(table))
    days = finished_days(settings, stream, table)
    return [day for day in days if day.isoformat() not in known]


def day_events(
    settings: Settings,
    table: Table,
    days: Iterable[date],
    mode: str,
    longest_gap: int | None = LONGEST_GAP,
) -> Iterator[dg.AssetMaterialization]:
    """An event for each of the days, with how many rows the table holds of it, at which version.

    Of more than `longest_gap` days without rows in a row there is none.
    """
    wanted = sorted(days)
    lake = settings.lake()
    # Before the rows are counted: what is committed meanwhile is no row of a finished day.
    at = (
        metadata.of_version(resolve_version(lake, table, None))
        if wanted and lake.exists(table)
        else {}
    )
    rows = rows_by_day(lake, table, wanted) if wanted else {}
    for has_rows, span in groupby(wanted, key=lambda day: day in rows):
        alike = [*span]
        if has_rows or longest_gap is None or len(alike) <= longest_gap:
            for day in alike:
                shown = metadata.of_day_rows(rows.get(day, 0)) | metadata.of_mode(mode) | at
                yield dg.AssetMaterialization(
                    table_key(table), partition=day.isoformat(), metadata=shown
                )


@dataclass
class DayReporter:
    """Reports the finished days of a run's streams, at most `AT_ONCE` a call, in one batch.

    The first time also those that the instance does not know yet. What is left when the run ends is
    unknown to the instance, so that the next run reports it.
    """

    op: dg.OpExecutionContext
    settings: Settings
    mode: str
    _waiting: deque[dg.AssetMaterialization] = field(default_factory=deque)
    _compared: set[str] = field(default_factory=set)

    def report(self, stream: AnyStream, closed: Sequence[date]) -> None:
        """Take up what the stream finished, and report what waits for it longest."""
        for table in stream.tables:
            if by_days(stream, table):
                try:
                    self._take(stream, table, closed)
                except Exception as error:
                    # A table that cannot be read must not end its neighbours' run.
                    self._compared.discard(table.name)
                    self.op.log.error(f"days of {table.name} could not be reported: {error}")
        self._store()

    def finish(self) -> None:
        """Report all that waits."""
        while self._waiting:
            self._store()

    def _store(self) -> None:
        events = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
        store_materializations(self.op.instance, events, self.op)

    def _take(self, stream: Stream, table: Table, closed: Sequence[date]) -> None:
        assert table.days is not None  # noqa: S101 - called for tables by days only
        start = table.days.start
        days = {day for day in closed if day >= start}
        if table.name not in self._compared:
            days |= {*unreported_days(self.op.instance, self.settings, stream, table)}
        self._waiting += day_events(self.settings, table, days, self.mode)
        self._compared.add(table.name)


class ReportDaysConfig(dg.Config):
    """The tables whose days are reported, and which of their days."""

    tables: list[str] = Field(default=[], description="Names of tables. Empty: all by days.")
    first: DayText = Field(default="", description="The first day. Empty: that of the table.")
    last: DayText = Field(default="", description="The last day. Empty: the last finished one.")


def report_days_job(topology: Topology) -> dg.JobDefinition:
    """One run reports what Dagster lacks; it computes nothing and starts no JVM."""

    @dg.op(
        name=prefixed("report_days_again"),
        description="Reports finished days of which the instance has no materialization.",
    )
    def report(
        context: dg.OpExecutionContext,
        config: ReportDaysConfig,
        rivermark_settings: SettingsResource,
    ) -> None:
        settings = rivermark_settings.settings()
        first, last = optional_day(config.first), optional_day(config.last)
        total = 0
        for stream, table in _chosen(topology, config.tables):
            days = [
                day
                for day in unreported_days(context.instance, settings, stream, table)
                if (first is None or day >= first) and (last is None or day <= last)
            ]
            events = [*day_events(settings, table, days, "reported again", longest_gap=None)]
            for first_of in range(0, len(events), AT_ONCE):
                some = events[first_of : first_of + AT_ONCE]
                store_materializations(context.instance, some, context)
            context.log.info(f"{table.name}: {len(days):,} days reported")
            total += len(days)
        context.add_output_metadata({"days": total})

    @dg.job(
        executor_def=dg.in_process_executor,
        name=prefixed("report_days"),
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
    daily = {table.name: (stream, table) for stream, table in daily_tables(topology)}
    for name in names:
        if name not in daily:
            known = ", ".join(sorted(daily))
            raise UnknownStream(f"no table by days is named {name!r}; there are: {known}")
    return [daily[name] for name in names or daily]
