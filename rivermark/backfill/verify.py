"""Derived tables held to their inputs: a sample of closed days computed again, and compared.

A hole in a derived table breaks no rule that looks at its rows. Its inputs show it: by the same
`build` they give the rows again, and count and fingerprint of each day are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession

from rivermark.backfill.pending import pending_days
from rivermark.backfill.plan import closed_through
from rivermark.backfill.staging import staged
from rivermark.lake.archive import new_id
from rivermark.lake.day_predicates import days_of
from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.quoting import quoted
from rivermark.lake.sql import spilling_connection
from rivermark.lake.statistics import largest, smallest
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import AnyStream, Stream
from rivermark.model.table import Table, days_between
from rivermark.model.topology import Topology
from rivermark.quality.duckdb_sql import on_days
from rivermark.runtime.query.recompute import pin_inputs

if TYPE_CHECKING:
    from pyarrow import dataset

SAMPLE: Final = 2
"""Days of a stream that are computed again: the newest closed one, and one of those before."""
REACH: Final = 60
"""How many closed days back the other one may lie; each has its turn."""


@dataclass(frozen=True)
class Fingerprint:
    """Number of rows, and the sum of their 64-bit hashes, in any order."""

    rows: int
    sum: int


@dataclass(frozen=True)
class Verified:
    """A day of a stream: fingerprints by table as published and as computed, what differs.

    `skipped` says why nothing was compared.
    """

    stream: str
    day: date | None
    published: dict[str, Fingerprint] = field(default_factory=dict)
    computed: dict[str, Fingerprint] = field(default_factory=dict)
    differences: dict[str, str] = field(default_factory=dict)
    skipped: str = ""

    @property
    def matches(self) -> bool:
        """True if every table of the stream holds what its inputs give."""
        return not self.differences

    @property
    def sentence(self) -> str:
        """The result in words, with what to do."""
        if self.skipped:
            day = f"{self.day}: " if self.day else ""
            return f"{self.stream}: {day}not compared: {self.skipped}"
        if self.matches:
            rows = ", ".join(f"{f.rows:,} rows of {name}" for name, f in self.computed.items())
            return f"{self.stream}: {self.day}: {rows} are what the inputs give"
        parts = "; ".join(f"{name}: {what}" for name, what in self.differences.items())
        return (
            f"{self.stream}: {self.day} is not what the inputs give: {parts}. Look at it: "
            f"rivermark fsck; put it right: rivermark reprocess {self.stream} --from {self.day} "
            "--follow-ups"
        )


def verify(
    spark: Callable[[], SparkSession],
    lake: Lake,
    topology: Topology,
    streams: Sequence[AnyStream],
    *,
    days: Collection[date] = (),
    today: date | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> Iterator[Verified]:
    """Compare days of each derived stream with what its inputs give: those days, or a sample.

    Nothing is written but what is removed again. Days that are pending are not compared: their
    inputs changed since. Streams may run meanwhile.
    """
    pending = pending_days(lake, topology)
    for stream in streams:
        if not isinstance(stream, Stream):
            continue
        try:
            closed = closed_days(lake, stream)
            left_out = pending.get(stream.name, set())
            known = [day for day in closed if day not in left_out]
            chosen = [d for d in known if d in days] if days else sample(known, today)
            for day in sorted({*days} - {*chosen}):
                reason = "it is pending" if day in left_out else "not a closed day with rows"
                yield Verified(stream.name, day, skipped=reason)
            if not (chosen or days):
                yield Verified(stream.name, None, skipped="it has no closed day with rows")
            for day in chosen:
                on_step(f"computing {stream.name}, {day}")
                yield _verified(spark(), lake, stream, day)
        except RivermarkError as error:
            yield Verified(stream.name, None, skipped=str(error))


def closed_days(lake: Lake, stream: Stream) -> list[date]:
    """The days from the first to the last with rows in any table that the stream has finished."""
    closed = closed_through(lake, stream)
    if closed is None or any(table.days is None for table in stream.tables):
        return []
    spans = [span for table in stream.tables if (span := _span(lake, table)) is not None]
    if not spans:
        return []
    last = max(end for _, end in spans)
    return days_between(min(start for start, _ in spans), min(last, closed))


def sample(closed: Sequence[date], today: date | None = None) -> list[date]:
    """The newest closed day, and another one: which, follows from the date, so each has a turn."""
    if len(closed) < SAMPLE:
        return [*closed]
    before = closed[-REACH - 1 : -1]
    turn = (today or datetime.now(UTC).date()).toordinal() % len(before)
    return [before[turn], closed[-1]]


def fingerprint(rows: dataset.Dataset, table: Table, day: date) -> Fingerprint:
    """Count and fingerprint of a table's rows of a day; the order of rows changes neither."""
    columns = ", ".join(quoted(f.name) for f in table.schema.fields)
    sql = (
        f"SELECT count(*), coalesce(sum(hash({columns})::HUGEINT), 0) FROM rows_of_table "  # noqa: S608
        f"WHERE {on_days(table, [day])}"
    )
    with spilling_connection({"rows_of_table": rows}) as duckdb:
        ((count, total),) = duckdb.sql(sql).fetchall()
    return Fingerprint(int(count), int(total))


def _verified(spark: SparkSession, lake: Lake, stream: Stream, day: date) -> Verified:
    versions = pin_inputs(lake, stream, None)
    now = {table: delta_table(lake.path(table)) for table in stream.tables}
    published = {t.name: fingerprint(dataset_of(opened), t, day) for t, opened in now.items()}
    computed: dict[str, Fingerprint] = {}
    differences: dict[str, str] = {}
    with staged(spark, lake, new_id(datetime.now(UTC)), stream, day, day, versions) as rows:
        for table in stream.tables:
            computed[table.name] = fingerprint(rows.rows(table), table, day)
            if computed[table.name] != published[table.name]:
                difference = rows.compared(spark, now[table], table, day, day)
                if not difference.same:  # Equal rows may be stored as other types.
                    differences[table.name] = difference.sentence()
    return Verified(stream.name, day, published, computed, differences)


def _span(lake: Lake, table: Table) -> tuple[date, date] | None:
    daily = days_of(table)
    ends = (smallest(lake, table, daily.column), largest(lake, table, daily.column))
    first, last = (daily.day_of(end) if isinstance(end, datetime) else end for end in ends)
    return None if first is None or last is None else (first, last)
