"""Days of derived tables: final when every source has passed them, as complete as their sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from pyspark.sql.types import TimestampType

from rivermark.backfill.late.hours import bounds, day_of, rows_by_hour
from rivermark.backfill.pending import pending_days
from rivermark.lake.day_predicates import days_of
from rivermark.lake.quoting import quoted
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import query
from rivermark.model.stream import Stream, table_of
from rivermark.model.table import Table, days_between
from rivermark.model.topology import Topology
from rivermark.monitor.completeness.ingest_day import Day, State
from rivermark.monitor.watermarks import StreamWatermark, awaited_watermarks, sources_of
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


WORST_FIRST: Final[tuple[State, ...]] = ("fail", "open", "warn", "complete")
JOINED_DAYS: Final = 14


@dataclass(frozen=True, kw_only=True)
class DerivedDay:
    """A day of a derived stream: rows of its first table, and the days of its sources.

    Its state is the worst of its sources', and `open` while the watermark of a source, or its own,
    less the stream's margin, has not passed the day: results are still to be written (until then it
    is not `finished`). It warns while it is `pending`: rows that it is made of were changed, and it
    has not been recomputed since. `joined` is set for streams that join by keys.
    """

    stream: str
    day: date
    state: State
    rows: int
    finished: bool = True
    pending: bool = False
    sources: tuple[Day, ...] = ()
    watermarks: tuple[StreamWatermark, ...] = ()
    joined: Joined | None = None

    @property
    def sentence(self) -> str:
        """The figures in words."""
        parts = [f"{self.rows:,} rows"]
        if self.joined is not None:
            parts.append(f"{self.joined.matched:,} matched")
            parts += [f"{n:,} in {name}" for name, n in self.joined.unmatched.items()]
            still = "waiting" if self.state == "open" else "without a row by the stream's own rule"
            parts += [f"{n:,} keys of {name} {still}" for name, n in self.joined.pending.items()]
        troubled = [d for d in self.sources if d.state in ("warn", "fail")]
        parts += [f"{d.stream}: {d.sentence}" for d in troubled]
        if self.pending:
            parts.append("rows that it is made of were changed: it has to be recomputed")
        if self.state == "open":
            behind = ", ".join(
                f"{w.stream} at {w.at:%Y-%m-%d %H:%M}" if w.at else f"{w.stream} without a row"
                for w in self.watermarks
            )
            parts.append(f"still open: {behind or 'not computed yet'}")
        return "; ".join(parts)


def days_of_stream(
    settings: Settings,
    topology: Topology,
    stream: Stream,
    days: Sequence[date],
    reached: Mapping[str, datetime],
    of_sources: Mapping[str, Sequence[Day]],
) -> list[DerivedDay]:
    """Those of the days that the stream's first table can hold, in order.

    `of_sources` are the days of every ingest, by name; those of the same date count, also where the
    zones of the days differ. Partners of a join are counted for the newest days only, since each
    day needs several queries.
    """
    table = stream.tables[0]
    if table.days is None or not days:
        return []
    start, end = bounds(min(days), max(days), table.days)
    rows: Counter[date] = Counter()
    for hour, count in rows_by_hour(settings, table, start, end).items():
        rows[day_of(hour, table.days)] += count
    pending = pending_days(settings.lake(), topology).get(stream.name, set())
    watermarks = awaited_watermarks(topology, stream, reached)
    if watermarks and stream.kind == "append":
        # Its sources may have passed the day while it is paused. A refreshed table is as of its
        # last computation, and nothing waits for dumps.
        watermarks = (*watermarks, StreamWatermark(stream.name, reached.get(stream.name)))
    sources = [ingest.name for ingest in sources_of(topology, stream)]
    newest = sorted(days)[-JOINED_DAYS:] if is_join(stream) else []
    partners = joined(settings, stream, newest[0], newest[-1]) if newest else {}
    derived = []
    for day in sorted(days):
        if day < table.days.start:
            continue
        _, day_end = bounds(day, day, table.days)
        upstream = tuple(d for s in sources for d in of_sources.get(s, ()) if d.day == day)
        passed = all(w.at is not None and w.at >= day_end + stream.margin for w in watermarks)
        states = {d.state for d in upstream if not (d.state == "open" and passed)}
        states.add("complete" if passed else "open")
        if passed and day in pending:
            states.add("warn")
        derived.append(
            DerivedDay(
                stream=stream.name,
                day=day,
                state=next(s for s in WORST_FIRST if s in states),
                rows=rows[day],
                finished=passed,
                pending=day in pending,
                sources=upstream,
                watermarks=watermarks,
                joined=partners.get(day),
            )
        )
    return derived
