"""The day to which an instant belongs, as SQL of DuckDB.

DuckDB brings the rules of zones with it, and Python takes those of the machine: where a government
has changed its clocks since either was made, they differ, and a row would belong to one day by the
bounds of days and to another in SQL. So DuckDB is asked for its offsets, once a process and zone,
and those in which it differs are written into the expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import chain, pairwise
from typing import Final
from zoneinfo import ZoneInfo

import pyarrow as pa

from rivermark.lake.day_predicates import day_sql
from rivermark.lake.sql import connection

DAY: Final = 24 * 60 * 60
MINUTE: Final = 60
PROBES: Final = range(
    int(datetime(1900, 1, 1, tzinfo=UTC).timestamp()),
    int(datetime(2050, 1, 1, tzinfo=UTC).timestamp()),
    DAY,
)
"""A moment of each day, in seconds since 1970."""
OFFSETS: Final = """
SELECT CAST(epoch(timezone('{zone}', to_timestamp(second))) AS BIGINT) - second FROM probes
"""


def duckdb_day(column: str, zone: str) -> str:
    """The day of a zone to which an instant belongs, as SQL."""
    others = [
        (start, end, f"CAST(timezone('UTC', {column}) + INTERVAL ({offset}) SECOND AS DATE)")
        for start, end, offset in other_offsets(zone)
    ]
    local_date = f"CAST(timezone('{zone}', {column}) AS DATE)"
    return day_sql(column, zone, local_date, "TIMESTAMPTZ", others)


@cache
def other_offsets(zone: str) -> tuple[tuple[datetime, datetime, int], ...]:
    """Spans (UTC) for which DuckDB has another offset than Python, with that of Python in seconds.

    Exact to a minute.
    """
    if zone == "UTC":
        return ()
    known: dict[int, tuple[int, int]] = {}
    _ask(zone, PROBES, known)
    changing = [at for at, after in pairwise(PROBES) if known[at] != known[after]]
    # Where clocks change for both at once, two seconds of the day tell; else each minute is asked.
    edges = {at: _change_within(zone, at) for at in changing}
    _ask(zone, [*chain.from_iterable(edges.values())], known)
    apart = [
        at
        for at in changing
        if any(known[s][0] != known[s][1] for s in (at, at + DAY, *edges[at]))
        or known[at][0] == known[at + DAY][0]
    ]
    _ask(zone, [at + n * MINUTE for at in apart for n in range(1, DAY // MINUTE)], known)
    spans: list[tuple[datetime, datetime, int]] = []
    for second, following in pairwise(sorted(known)):
        offset, other = known[second]
        if offset == other:
            continue
        start, end = (datetime.fromtimestamp(each, UTC) for each in (second, following))
        if spans and spans[-1][1:] == (start, offset):
            start = spans.pop()[0]
        spans.append((start, end, offset))
    return tuple(spans)


def _change_within(zone: str, day: int) -> tuple[int, ...]:
    """The last second before Python's offset changes in that day, and the first one after."""
    before, after = day, day + DAY
    first, last = _ours(zone, (before, after))
    if first == last:
        return ()
    while after - before > 1:
        middle = (before + after) // 2
        if _ours(zone, (middle,))[0] == first:
            before = middle
        else:
            after = middle
    return before, after


def _ask(zone: str, seconds: Sequence[int], known: dict[int, tuple[int, int]]) -> None:
    known |= zip(
        seconds, zip(_ours(zone, seconds), _theirs(zone, seconds), strict=True), strict=True
    )


def _ours(zone: str, seconds: Iterable[int]) -> list[int]:
    local = ZoneInfo(zone)
    offsets = (datetime.fromtimestamp(second, local).utcoffset() for second in seconds)
    return [0 if offset is None else round(offset.total_seconds()) for offset in offsets]


def _theirs(zone: str, seconds: Sequence[int]) -> list[int]:
    with connection({}) as duck:
        duck.register("probes", pa.table({"second": pa.array(seconds, pa.int64())}))
        return [offset for (offset,) in duck.execute(OFFSETS.format(zone=zone)).fetchall()]
