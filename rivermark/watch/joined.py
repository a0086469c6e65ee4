"""What became of the rows that a join took: matched, left without a partner, or still waiting."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from deltalake import DeltaTable
from pyspark.sql.types import TimestampType

from rivermark.lake.table import Table
from rivermark.settings import Settings
from rivermark.stream import Stream, table_of
from rivermark.watch.query import ask, quoted

AROUND: Final = timedelta(days=1)
"""A result is looked for so far around its input's time, and by the stream's margin more."""


@dataclass(frozen=True)
class Joined:
    """A join over a span of event time, in figures.

    `matched` and `unmatched` are rows of its tables, the latter by table. `pending` counts, by
    input, the keys that have no row in any table yet: they wait while the span is open; once it is
    closed, the stream's own rule has left them out.
    """

    matched: int
    unmatched: dict[str, int]
    pending: dict[str, int]


def is_join(stream: Stream) -> bool:
    """Whether the stream joins its inputs by keys that all its tables carry."""
    keys = stream.tables[0].keys
    tables = [*stream.tables, *(table_of(r) for r in stream.reads)]
    return (
        len(stream.reads) > 1
        and len(stream.tables) > 1
        and bool(keys)
        and all(t.event_time and set(keys) <= set(t.schema.fieldNames()) for t in tables)
    )


def joined(settings: Settings, stream: Stream, start: datetime, end: datetime) -> Joined:
    """The figures of a join for inputs and results whose event time lies in [start, end)."""
    lake = settings.lake()
    there = [t for t in stream.tables if lake.exists(t)]
    counts = {t.name: _rows(settings, t, start, end) for t in there}
    first = stream.tables[0].name
    return Joined(
        matched=counts.get(first, 0),
        unmatched={name: n for name, n in counts.items() if name != first},
        pending={
            table.name: _without_result(settings, stream, table, there, start, end)
            for table in map(table_of, stream.reads)
            if lake.exists(table)
        },
    )


def _rows(settings: Settings, table: Table, start: datetime, end: datetime) -> int:
    found = ask(
        f"SELECT count(*) AS n FROM found WHERE {_within(table)}",  # noqa: S608 - declared names
        {"found": DeltaTable(settings.lake().path(table)).to_pyarrow_dataset()},
        {"start": start, "end": end},
    )
    return int(found[0]["n"])


def _without_result(
    settings: Settings,
    stream: Stream,
    table: Table,
    results: list[Table],
    start: datetime,
    end: datetime,
) -> int:
    """Keys of an input's rows that none of the tables has."""
    keys = ", ".join(quoted(key) for key in stream.tables[0].keys)
    lake = settings.lake()
    around = AROUND + stream.margin
    tables = {f"r{n}": r for n, r in enumerate(results)}
    union = " UNION ALL ".join(
        f"SELECT {keys} FROM {name} WHERE {_within(r, 'wide_start', 'wide_end')}"  # noqa: S608
        for name, r in tables.items()
    )
    sql = (
        f"SELECT count(*) AS n FROM (SELECT DISTINCT {keys} FROM taken WHERE {_within(table)}"  # noqa: S608
        + (f" EXCEPT ({union})" if union else "")
        + ")"
    )
    values: dict[str, object] = {"start": start, "end": end}
    if union:
        values |= {"wide_start": start - around, "wide_end": end + around}
    named = {"taken": table, **tables}
    found = ask(
        sql,
        {name: DeltaTable(lake.path(t)).to_pyarrow_dataset() for name, t in named.items()},
        values,
    )
    return int(found[0]["n"])


def _within(table: Table, start: str = "start", end: str = "end") -> str:
    column = table.event_time or ""
    assert isinstance(table.schema[column].dataType, TimestampType)  # noqa: S101
    return f"{quoted(column)} >= ${start} AND {quoted(column)} < ${end}"
