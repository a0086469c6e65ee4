"""Reports to Dagster of tables that changed without it: what the console did, or all.

A run of Dagster reports its own streams. What others wrote, and what is there when an instance is
new or its assets were wiped, is reported here: else the pages would show tables with rows as never
materialized, and finished days as missing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import dagster as dg
import msgspec

from rivermark.dagster.jobs import metadata
from rivermark.dagster.jobs.day_reports import AT_ONCE, day_events, unreported_days
from rivermark.dagster.jobs.event_batch import store_materializations
from rivermark.dagster.jobs.names import by_days, in_order, progress_key, table_key
from rivermark.lake.log import CommitLog
from rivermark.lake.snapshot import row_count
from rivermark.model.stream import AnyStream
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.settings import Settings

OUTSIDE: Final = "outside of Dagster"
SECONDS: Final = 20.0
"""How long a comparison may take; what is left over has its turn at the next."""


class Seen(msgspec.Struct, frozen=True):
    """A table as it was when it was compared.

    Its version, through which day its stream has finished days, and whether the instance knew the
    table afterwards.
    """

    version: int
    through: str
    known: bool


@dataclass
class TableReporter:
    """Compares all tables with one instance; `seen` is what the comparison before it has seen.

    Tables of `hosted` groups are left to the runs that host them, but for those which the instance
    does not know at all.
    """

    instance: dg.DagsterInstance
    settings: Settings
    topology: Topology
    hosted: Collection[str]
    seen: dict[str, Seen]
    events: int = 0
    problems: list[str] = field(default_factory=list)
    reported: set[str] = field(default_factory=set)
    """Tables that the instance got events of."""

    def __post_init__(self) -> None:
        self._lake = self.settings.lake()
        self._closed = ClosedDays(self._lake, self.settings.state)
        self._latest = _latest_materializations(self.instance, self.topology)

    def report(self) -> None:
        """Report what changed since it was compared last, a bounded part; then `seen` says so."""
        deadline = time.monotonic() + SECONDS
        for group, streams in self.topology.groups().items():
            before = self.events
            for stream in streams:
                for table in in_order(stream):
                    if time.monotonic() < deadline:
                        self._compare_or_say(stream, table)
            if self.events > before:
                shown = {**metadata.of_mode(OUTSIDE)}
                self._store([dg.AssetMaterialization(progress_key(group), metadata=shown)])

    def _compare_or_say(self, stream: AnyStream, table: Table) -> None:
        """Compare a table; one that cannot be read must not keep the others from being reported."""
        try:
            if self._lake.exists(table):
                self._compare(stream, table)
        except Exception as error:
            self.problems.append(f"{table.name} could not be compared: {error}")

    def _compare(self, stream: AnyStream, table: Table) -> None:
        before, latest = self.seen.get(table.name), self._latest.get(table_key(table))
        hosted = stream.group in self.hosted
        if hosted and (before or latest is not None):
            return
        now = Seen(
            version=self._version(table, before),
            through=str(self._closed.through(stream.name)),
            known=latest is not None,
        )
        if now == before:
            return
        days = [] if hosted else self._days(stream, table)
        room = max(0, AT_ONCE - self.events)
        events = [*days[:room], *self._of_table(table, before, now, latest)]
        self._store(events)
        if events:
            self.reported.add(table.name)
        if len(days) <= room:
            self.seen[table.name] = msgspec.structs.replace(now, known=now.known or bool(events))

    def _store(self, events: Sequence[dg.AssetMaterialization]) -> None:
        store_materializations(self.instance, events)
        self.events += len(events)

    def _version(self, table: Table, before: Seen | None) -> int:
        """The newest version: looked up by name where the last one is known, for logs are long."""
        log = CommitLog(self._lake.path(table))
        if before and log.holds(before.version) and not log.holds(before.version + 1):
            return before.version
        return max(log.versions(), default=-1)

    def _of_table(
        self, table: Table, before: Seen | None, now: Seen, latest: float | None
    ) -> Iterator[dg.AssetMaterialization]:
        """The event of a table whose rows are newer than what was last reported to the instance."""
        log = CommitLog(self._lake.path(table))
        if latest is not None:
            commit = log.read(now.version)
            if commit is None or commit.at.timestamp() <= latest:
                return
            if before and not log.adds_rows(before.version + 1, now.version + 1):
                return
        rows = row_count(self._lake, table)
        if rows:
            shown = metadata.of_mode(OUTSIDE) | metadata.of_version(now.version)
            shown[metadata.ROW_COUNT] = dg.MetadataValue.int(rows)
            yield dg.AssetMaterialization(table_key(table), metadata={**shown})

    def _days(self, stream: AnyStream, table: Table) -> list[dg.AssetMaterialization]:
        if not by_days(stream, table):
            return []
        days = unreported_days(self.instance, self.settings, stream, table)
        return [*day_events(self.settings, table, days, OUTSIDE)]


def _latest_materializations(
    instance: dg.DagsterInstance, topology: Topology
) -> dict[dg.AssetKey, float]:
    """Last materialization (seconds since 1970) of each table that ever had one."""
    keys = [table_key(table) for stream in topology.streams for table in stream.tables]
    return {
        record.asset_entry.asset_key: latest.timestamp
        for record in instance.get_asset_records(keys)
        if (latest := record.asset_entry.last_materialization) is not None
    }
