"""Two sets of a table's rows compared by the table's key. DuckDB reads the files; no JVM."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import DecimalType, DoubleType, FloatType, IntegralType

from rivermark.backfill.difference import HIDDEN, DaySums, Difference, Sample
from rivermark.lake.sql import quoted, spilling_connection
from rivermark.model.table import Table, days_between
from rivermark.quality.duckdb_sql import local_day, on_days

if TYPE_CHECKING:
    import duckdb
    from pyarrow import dataset

SAMPLES: Final = 5
"""Rows of each kind that a report shows."""

COUNTS: Final = 'SELECT "_kind", count(*) FROM paired GROUP BY 1'
DAYS: Final = """
SELECT "_day", "_kind", count(*) FROM paired GROUP BY 1, 2 ORDER BY 1, 2
"""


def compare(
    before: dataset.Dataset, after: dataset.Dataset, table: Table, first: date, last: date
) -> Difference:
    """How the rows of the days differ. Values of personal columns are hidden in the samples."""
    with spilling_connection({"published": before, "computed": after}) as connection:
        _pair(connection, table, first, last)
        count: dict[str, int] = dict(connection.sql(COUNTS).fetchall())
        differs = count.keys() != {"unchanged"}
        return Difference(
            **count,
            columns=_columns(connection, table) if "changed" in count else {},
            days=_days(connection),
            hours=_hours(connection, table) if differs and table.event_time else frozenset(),
            sums=tuple(_sums(connection, table)),
            samples=tuple(_samples(connection, table)) if differs else (),
        )


def keys_of(table: Table) -> list[str]:
    """The columns by which rows are paired: the declared key, or all of them."""
    return list(table.keys) or [f.name for f in table.schema.fields]


def _pair(connection: duckdb.DuckDBPyConnection, table: Table, first: date, last: date) -> None:
    """Make `paired`: each row with its partner as structs `b` and `a`, its kind and its day.

    Partners are of one day: a row that moved to another is removed from its own and added there.
    """
    names = [f.name for f in table.schema.fields]
    keys = keys_of(table)
    others = [name for name in names if name not in keys]
    where = on_days(table, days_between(first, last))
    columns = ", ".join(quoted(n) for n in names)
    by = ", ".join(quoted(k) for k in keys)
    day = local_day(table)
    order = f"ORDER BY {', '.join(quoted(n) for n in others)}" if others else ""
    for name, source in (("old_rows", "published"), ("new_rows", "computed")):
        # Names are declared in code, and days are ours.
        connection.execute(
            f'CREATE TEMP TABLE {name} AS SELECT {columns}, {day} AS "_day", '  # noqa: S608
            f'row_number() OVER (PARTITION BY {by}, {day} {order}) AS "_n" '
            f"FROM {source} WHERE {where}"
        )
    same_key = " AND ".join(f"b.{quoted(k)} IS NOT DISTINCT FROM a.{quoted(k)}" for k in keys)
    differ = " OR ".join(f"b.{quoted(n)} IS DISTINCT FROM a.{quoted(n)}" for n in others)
    connection.execute(
        'CREATE TEMP TABLE paired AS SELECT b, a, coalesce(a."_day", b."_day") AS "_day", CASE '  # noqa: S608
        "WHEN b.\"_n\" IS NULL THEN 'added' WHEN a.\"_n\" IS NULL THEN 'removed' "
        f"WHEN {differ or 'false'} THEN 'changed' ELSE 'unchanged' END AS \"_kind\" "
        f'FROM old_rows b FULL JOIN new_rows a ON {same_key} AND b."_day" = a."_day" '
        'AND b."_n" = a."_n"'
    )


def _columns(connection: duckdb.DuckDBPyConnection, table: Table) -> dict[str, int]:
    """In how many changed rows each column differs, the most first."""
    keys = keys_of(table)
    names = [f.name for f in table.schema.fields if f.name not in keys]
    counts = ", ".join(
        f"count(*) FILTER (b.{quoted(n)} IS DISTINCT FROM a.{quoted(n)})" for n in names
    )
    sql = f"SELECT {counts} FROM paired WHERE \"_kind\" = 'changed'"  # noqa: S608
    (row,) = connection.sql(sql).fetchall()
    differing = dict(zip(names, row, strict=True))
    return {name: n for name, n in sorted(differing.items(), key=lambda e: -e[1]) if n}


def _days(connection: duckdb.DuckDBPyConnection) -> dict[date, dict[str, int]]:
    days: dict[date, dict[str, int]] = {}
    for day, kind, n in connection.sql(DAYS).fetchall():
        numbers = days.setdefault(day, {"added": 0, "removed": 0, "changed": 0, "unchanged": 0})
        numbers[kind] = n
    return days


def _hours(connection: duckdb.DuckDBPyConnection, table: Table) -> frozenset[datetime]:
    """The hours of event time that hold a row which differs: where it was, and where it is now."""
    time = quoted(table.event_time or "")
    both = " UNION ".join(
        f"SELECT date_trunc('hour', {side}.{time}) FROM paired WHERE \"_kind\" <> 'unchanged'"  # noqa: S608
        for side in ("a", "b")
    )
    return frozenset(at.astimezone(UTC) for (at,) in connection.sql(both).fetchall() if at)


def summed_columns(table: Table) -> list[str]:
    """Numeric columns whose sums mean something: no keys, nothing personal or technical."""
    kinds = (DecimalType, DoubleType, FloatType, IntegralType)
    left_out = {*table.keys, *table.personal}
    return [
        f.name
        for f in table.schema.fields
        if isinstance(f.dataType, kinds) and f.name not in left_out and not f.name.startswith("_")
    ]


def _sums(connection: duckdb.DuckDBPyConnection, table: Table) -> list[DaySums]:
    names = summed_columns(table)
    if not names:
        return []
    sums = ", ".join(f"sum(b.{quoted(n)}), sum(a.{quoted(n)})" for n in names)
    rows = connection.sql(f'SELECT "_day", {sums} FROM paired GROUP BY 1 ORDER BY 1').fetchall()  # noqa: S608
    return [
        DaySums(row[0], name, row[1 + 2 * n], row[2 + 2 * n])
        for row in rows
        for n, name in enumerate(names)
    ]


def _samples(connection: duckdb.DuckDBPyConnection, table: Table) -> list[Sample]:
    keys = list(table.keys)
    order = ", ".join(f"coalesce(a.{quoted(k)}, b.{quoted(k)}) NULLS FIRST" for k in keys_of(table))
    rows = connection.sql(
        f'SELECT "_kind", b, a FROM paired WHERE "_kind" <> \'unchanged\' '  # noqa: S608
        f'QUALIFY row_number() OVER (PARTITION BY "_kind" ORDER BY {order}) <= {SAMPLES} '
        f'ORDER BY "_kind", {order}'
    ).fetchall()
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
    """Whether two values are equal; NaN equals itself."""
    return bool(one == other) or (one != one and other != other)
