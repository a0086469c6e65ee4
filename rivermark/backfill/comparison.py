"""Two sets of a table's rows compared by the table's key, by DuckDB or by Spark.

First both are read through once, and the rows of each day and bucket of keys come to a count, sums
and a digest: that takes no more memory for a day of a hundred million rows than for one of a
thousand. Only rows of buckets that differ are paired. The SQL is one; what it is called by either
engine is in `DuckDb` (no JVM) and `OnSpark` (rivermark/backfill/spark_comparison.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql.types import DecimalType, DoubleType, FloatType, IntegralType

from rivermark.backfill.difference import HIDDEN, DaySums, Difference, Sample
from rivermark.backfill.duckdb_comparison import DuckDb
from rivermark.backfill.spark_comparison import OnSpark
from rivermark.lake.sql import spilling_connection
from rivermark.model.table import Table, days_between

if TYPE_CHECKING:
    from pyarrow import dataset
    from pyspark.sql import DataFrame

    Engine: TypeAlias = "DuckDb | OnSpark"
    """Where the rows lie as `published` and `computed`, and what dialects differ in."""

SAMPLES: Final = 5
"""Rows of each kind that a report shows."""
BUCKETS: Final = 16_384
"""Buckets of keys over all days: of a hundred million rows one has six thousand."""
FEWEST: Final = 64
KINDS: Final = """
CASE WHEN b._n IS NULL THEN 'added' WHEN a._n IS NULL THEN 'removed'
     WHEN {differ} THEN 'changed' ELSE 'unchanged' END
"""


def compare(
    before: dataset.Dataset, after: dataset.Dataset, table: Table, first: date, last: date
) -> Difference:
    """Compares the rows of the days. Values of personal columns are hidden in the samples."""
    with spilling_connection({"published": before, "computed": after}) as connection:
        return compare_by(DuckDb(connection, table), table, first, last)


def compare_on_spark(
    before: DataFrame, after: DataFrame, table: Table, first: date, last: date
) -> Difference:
    """As `compare`, of frames. What is paired lies on the executors' disks meanwhile."""
    engine = OnSpark({"published": before, "computed": after}, table)
    try:
        return compare_by(engine, table, first, last)
    finally:
        engine.close()


def compare_by(engine: Engine, table: Table, first: date, last: date) -> Difference:
    """As `compare`, by an engine that has the rows."""
    days = days_between(first, last)
    buckets = max(FEWEST, BUCKETS // len(days))
    published, computed = (
        _digested(engine, table, days, buckets, source) for source in ("published", "computed")
    )
    differing = [
        place
        for place in published.keys() | computed.keys()
        if published.get(place, EMPTY)[:2] != computed.get(place, EMPTY)[:2]
    ]
    numbers: dict[date, dict[str, int]] = {}
    for place in published.keys() - {*differing}:
        _add(numbers, place[0], "unchanged", published[place][0])
    shown: dict[str, Any] = {"sums": tuple(_sums(table, published, computed))}
    if differing:
        engine.only(
            pa.table(
                {
                    "_day": pa.array([day for day, _ in differing], pa.date32()),
                    "_bucket": pa.array([bucket for _, bucket in differing], pa.int64()),
                }
            )
        )
        _pair(engine, table, days, buckets)
        sql = "SELECT _day, _kind, count(*) AS n FROM paired GROUP BY 1, 2"
        for day, kind, count in engine.rows(sql):
            _add(numbers, day, kind, count)
        shown |= {
            "columns": _columns(engine, table),
            "hours": _hours(engine, table) if table.event_time else frozenset(),
            "samples": tuple(_samples(engine, table)),
        }
    of_kind: dict[str, Any] = {
        kind: sum(counts[kind] for counts in numbers.values())
        for kind in ("added", "removed", "changed", "unchanged")
    }
    return Difference(**of_kind, days={day: numbers[day] for day in sorted(numbers)}, **shown)


Place = tuple[date, int]
Digest = tuple[int, tuple[Any, ...], tuple[Any, ...]]
"""Rows of a day and bucket: how many, their digests, and the sums of columns."""
EMPTY: Final[Digest] = (0, (), ())


def _digested(
    engine: Engine, table: Table, days: Sequence[date], buckets: int, source: str
) -> dict[Place, Digest]:
    digests = engine.digests(f.name for f in table.schema.fields)
    sums = [engine.total(name) for name in summed_columns(table)]
    values = ", ".join(f"sum({value}) AS v{n}" for n, value in enumerate([*digests, *sums]))
    rows = engine.rows(
        # Names are declared in code, and days are ours.
        f"SELECT {engine.day()} AS _day, {engine.bucket(keys_of(table), buckets)} AS _bucket, "  # noqa: S608
        f"count(*) AS n, {values} FROM {source} WHERE {engine.on_days(days)} GROUP BY 1, 2"
    )
    cut = 3 + len(digests)
    return {(row[0], row[1]): (row[2], row[3:cut], row[cut:]) for row in rows}


def _add(numbers: dict[date, dict[str, int]], day: date, kind: str, count: int) -> None:
    of_day = numbers.setdefault(day, dict.fromkeys(("added", "removed", "changed", "unchanged"), 0))
    of_day[kind] += count


def keys_of(table: Table) -> list[str]:
    """The columns by which rows are paired: the declared key, or all of them."""
    return list(table.keys) or [f.name for f in table.schema.fields]


def _pair(engine: Engine, table: Table, days: Sequence[date], buckets: int) -> None:
    """Make `paired`: each row of the differing buckets with its partner, its kind and its day.

    The rows are structs `b` and `a`. Partners are of one day: a row that moved to another is
    removed from its own and added there.
    """
    names = [f.name for f in table.schema.fields]
    keys = keys_of(table)
    others = [name for name in names if name not in keys]
    columns = ", ".join(engine.name(n) for n in names)
    by = ", ".join(engine.comparable("", key) for key in keys)
    day, bucket = engine.day(), engine.bucket(keys, buckets)
    order = ", ".join(engine.comparable("", n) for n in others) or "1"
    for made, source in (("old_rows", "published"), ("new_rows", "computed")):
        engine.keep(
            made,
            f"SELECT {columns}, _day, "  # noqa: S608 - as above
            f"row_number() OVER (PARTITION BY {by}, _day ORDER BY {order}) AS _n FROM ("
            f"SELECT {columns}, {day} AS _day, {bucket} AS _bucket FROM {source} "
            f"WHERE {engine.on_days(days)}) SEMI JOIN differing USING (_day, _bucket)",
        )
    same_key = " AND ".join(
        f"{engine.comparable('b.', k)} IS NOT DISTINCT FROM {engine.comparable('a.', k)}"
        for k in keys
    )
    differ = " OR ".join(_differs(engine, n) for n in others) or "false"
    engine.keep(
        "paired",
        f"SELECT {engine.row('b')} AS b, {engine.row('a')} AS a, "  # noqa: S608
        f"coalesce(a._day, b._day) AS _day, {KINDS.format(differ=differ)} AS _kind "
        f"FROM old_rows b FULL JOIN new_rows a ON {same_key} AND b._day = a._day AND b._n = a._n",
    )


def _differs(engine: Engine, column: str) -> str:
    before, after = (engine.comparable(side, column) for side in ("b.", "a."))
    return f"{before} IS DISTINCT FROM {after}"


def _columns(engine: Engine, table: Table) -> dict[str, int]:
    """In how many changed rows each column differs, the most first."""
    keys = keys_of(table)
    names = [f.name for f in table.schema.fields if f.name not in keys]
    if not names:
        return {}
    counts = ", ".join(
        f"count(*) FILTER (WHERE {_differs(engine, n)}) AS c{i}" for i, n in enumerate(names)
    )
    (row,) = engine.rows(f"SELECT {counts} FROM paired WHERE _kind = 'changed'")  # noqa: S608
    differing = dict(zip(names, row, strict=True))
    return {name: n for name, n in sorted(differing.items(), key=lambda e: -e[1]) if n}


def _hours(engine: Engine, table: Table) -> frozenset[datetime]:
    """The hours of event time that hold a row which differs: where it was, and where it is now."""
    time = engine.name(table.event_time or "")
    both = " UNION ".join(
        f"SELECT date_trunc('hour', {side}.{time}) AS hour FROM paired WHERE _kind <> 'unchanged'"  # noqa: S608
        for side in ("a", "b")
    )
    return frozenset(at.astimezone(UTC) for (at,) in engine.rows(both) if at)


def summed_columns(table: Table) -> list[str]:
    """Numeric columns whose sums mean something: no keys, nothing personal or technical."""
    kinds = (DecimalType, DoubleType, FloatType, IntegralType)
    left_out = {*table.keys, *table.personal}
    return [
        f.name
        for f in table.schema.fields
        if isinstance(f.dataType, kinds) and f.name not in left_out and not f.name.startswith("_")
    ]


def _sums(
    table: Table, published: dict[Place, Digest], computed: dict[Place, Digest]
) -> list[DaySums]:
    names = summed_columns(table)
    days = sorted({day for day, _ in (*published, *computed)})

    def total(digests: dict[Place, Digest], day: date, column: int) -> Any:
        # Bucket by bucket in one order, or a sum of floats would be another one each time.
        values = (digests[place][2][column] for place in sorted(digests) if place[0] == day)
        known = [value for value in values if value is not None]
        return sum(known[1:], known[0]) if known else None

    return [
        DaySums(day, name, total(published, day, n), total(computed, day, n))
        for day in days
        for n, name in enumerate(names)
    ]


def _samples(engine: Engine, table: Table) -> list[Sample]:
    keys = list(table.keys)
    names = [*keys_of(table), *(f.name for f in table.schema.fields if f.name not in table.keys)]
    order = ", ".join(
        f"coalesce({engine.comparable('a.', n)}, {engine.comparable('b.', n)}) NULLS FIRST"
        for n in dict.fromkeys(names)
    )
    rows = []
    for kind in ("added", "changed", "removed"):
        rows += engine.rows(
            f"SELECT _kind, b, a FROM paired WHERE _kind = '{kind}' "  # noqa: S608
            f"ORDER BY {order} LIMIT {SAMPLES}"
        )
    return [_sample(table, keys, kind, before, after) for kind, before, after in rows]


def _sample(
    table: Table,
    keys: list[str],
    kind: str,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
) -> Sample:
    def shown(name: str, value: Any) -> Any:
        return HIDDEN if name in table.personal and value is not None else value

    row = (before if kind == "removed" else after) or {}
    names = [f.name for f in table.schema.fields if f.name not in keys]
    values: dict[str, Any] = {name: shown(name, row[name]) for name in names}
    if kind == "changed" and before is not None:
        values = {
            name: (shown(name, before[name]), shown(name, row[name]))
            for name in names
            if not _equal(before[name], row[name])
        }
    return Sample(kind, {k: shown(k, row[k]) for k in keys}, values)


def _equal(one: Any, other: Any) -> bool:
    """Returns True if two values are equal; NaN equals itself."""
    return bool(one == other) or (one != one and other != other)
