"""The outcome of rows that a join read: matched, left without a partner, or still waiting."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from pyspark.sql.types import TimestampType

from rivermark.lake.day_predicates import days_of
from rivermark.lake.quoting import quoted
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import query
from rivermark.model.stream import Stream, table_of
from rivermark.model.table import Table, days_between
from rivermark.settings import Settings

AROUND: Final = timedelta(days=1)
"""A result is searched so far around its input's time, and by the stream's margin more."""

Span = tuple[datetime, datetime]


@dataclass(frozen=True)
class Joined:
    """A join over a day of event time, in figures.

    `matched` and `unmatched` are rows of its tables, the latter by table. `pending` counts, by
    input, the keys that have no row in any table yet: they wait while the day is open; once it is
    closed, the stream's own rule has left them out.
    """

    matched: int
    unmatched: dict[str, int]
    pending: dict[str, int]


def is_join(stream: Stream) -> bool:
    """Returns True if the stream joins its inputs by keys that all its tables carry."""
    keys = stream.tables[0].keys
    tables = [*stream.tables, *(table_of(r) for r in stream.reads)]
    return (
        len(stream.reads) > 1
        and len(stream.tables) > 1
        and bool(keys)
        and all(t.event_time and set(keys) <= set(t.schema.fieldNames()) for t in tables)
    )


def joined(settings: Settings, stream: Stream, first: date, last: date) -> dict[date, Joined]:
    """The figures of a join for inputs and results of each day from `first` to `last`."""
    lake, span = settings.lake(), days_of(stream.tables[0]).bounds(first, last)
    written = [t for t in stream.tables if lake.exists(t)]
    counts = {t.name: _rows(settings, stream, t, span) for t in written}
    pending = {
        table.name: _without_result(settings, stream, table, written, span)
        for table in map(table_of, stream.reads)
        if lake.exists(table)
    }
    main = stream.tables[0].name
    return {
        day: Joined(
            matched=counts.get(main, {}).get(day, 0),
            unmatched={name: n.get(day, 0) for name, n in counts.items() if name != main},
            pending={name: n.get(day, 0) for name, n in pending.items()},
        )
        for day in days_between(first, last)
    }


def _rows(settings: Settings, stream: Stream, table: Table, span: Span) -> dict[date, int]:
    counts = query(
        f"SELECT {_day(table)} AS day, count(*) AS n FROM joined"  # noqa: S608 - declared names
        f" WHERE {_within(table)} GROUP BY 1",
        {"joined": open_table(settings.lake(), table)},
        {"zone": days_of(stream.tables[0]).zone, "start": span[0], "end": span[1]},
    )
    return {row["day"]: int(row["n"]) for row in counts}


def _without_result(
    settings: Settings, stream: Stream, table: Table, results: list[Table], span: Span
) -> dict[date, int]:
    """Keys of an input's rows, by day, that none of the tables has around their time."""
    keys = stream.tables[0].keys
    columns = ", ".join(quoted(key) for key in keys)
    lake, around = settings.lake(), AROUND + stream.margin
    tables = {f"r{n}": r for n, r in enumerate(results)}
    union = " UNION ALL ".join(
        f"SELECT {columns}, {_time(r)} AS _at FROM {name} "  # noqa: S608 - declared names
        f"WHERE {_within(r, 'wide_start', 'wide_end')}"
        for name, r in tables.items()
    )
    same = " AND ".join(f"r.{quoted(key)} = read_rows.{quoted(key)}" for key in keys)
    key = ", ".join(f"read_rows.{quoted(key)}" for key in keys)
    near = (
        f"r._at BETWEEN read_rows.{_time(table)} - $around AND read_rows.{_time(table)} + $around"
    )
    sql = (
        f"SELECT {_day(table)} AS day, count(DISTINCT row({key})) AS n FROM read_rows"  # noqa: S608
        + (f" ANTI JOIN ({union}) r ON {same} AND {near}" if union else "")
        + f" WHERE {_within(table)} GROUP BY 1"
    )
    start, end = span
    values: dict[str, object] = {"zone": days_of(stream.tables[0]).zone, "start": start, "end": end}
    if union:
        values |= {"wide_start": start - around, "wide_end": end + around, "around": around}
    counts = query(
        sql, {n: open_table(lake, t) for n, t in {"read_rows": table, **tables}.items()}, values
    )
    return {row["day"]: int(row["n"]) for row in counts}


def _day(table: Table) -> str:
    return f"timezone($zone, {_time(table)})::DATE"


def _within(table: Table, start: str = "start", end: str = "end") -> str:
    return f"{_time(table)} >= ${start} AND {_time(table)} < ${end}"


def _time(table: Table) -> str:
    column = table.event_time or ""
    assert isinstance(table.schema[column].dataType, TimestampType)  # noqa: S101
    return quoted(column)
