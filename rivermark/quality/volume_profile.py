"""The usual number of rows of a day or an hour: one profile, learned from those before, in SQL.

The profile is the median of the same weekday over eight weeks, where three of those days are known;
else the median of the fourteen days before, where enough of those are. A median does not follow one
odd day, as a mean would. For an hour it is the same hour of those days.

Suites use it for days (`UsualRows`), on Spark and in DuckDB; rivermark.monitor.completeness uses it
for hours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rivermark.lake.day_predicates import spark_day
from rivermark.lake.duckdb_days import duckdb_day
from rivermark.lake.quoting import quoted, spark_quoted
from rivermark.model.question import UsualRows

WEEKS: Final = 8
WEEKS_NEEDED: Final = 3
NEAR_DAYS: Final = 14
DAYS_NEEDED: Final = 3
FEWEST: Final = 20
"""Rows of a usual day below which chance alone makes large differences."""

_SAMPLED: Final = f"k <= {NEAR_DAYS} OR k % 7 = 0"


@dataclass(frozen=True)
class Dialect:
    """Differences of SQL between DuckDB and Spark, and days and hours.

    `local_day` takes a column and a zone, `quoted` a column's name. `later` is `slot` moved on by
    `k` days, `steps` are the values of `k`.
    """

    local_day: Callable[[str, str], str]
    steps: str
    quoted: Callable[[str], str]
    later: str = "slot + k"


SPARK: Final = Dialect(
    spark_day,
    # Made of constants.
    f"SELECT k FROM (SELECT explode(sequence(1, {7 * WEEKS})) AS k) AS days WHERE {_SAMPLED}",  # noqa: S608
    spark_quoted,
)
DUCKDB: Final = Dialect(
    duckdb_day,
    f"SELECT k::INTEGER AS k FROM range(1, {7 * WEEKS + 1}) AS days(k) WHERE {_SAMPLED}",  # noqa: S608
    quoted,
)
DUCKDB_HOURS: Final = Dialect(duckdb_day, DUCKDB.steps, quoted, "slot + to_days(k)")


def profile(dialect: Dialect, *, days_needed: int) -> str:
    """Common table expressions up to `profile(slot, by_week, by_day, of_week, of_days, spread)`.

    They read `counted(slot, n)`: rows by local day, or by local hour. Each of these is a sample for
    the days after it, joined by equality, since Spark would compare every day with every other.
    `spread` is that of the middle half of the weekly samples, scaled as for a normal distribution.
    """
    return f"""
    steps AS ({dialect.steps}),
    samples AS (
        SELECT {dialect.later} AS slot, CASE WHEN k % 7 = 0 THEN n END AS weekly,
               CASE WHEN k <= {NEAR_DAYS} THEN n END AS daily
        FROM counted CROSS JOIN steps
    ), profile AS (
        SELECT slot, count(weekly) >= {WEEKS_NEEDED} AS by_week,
               count(daily) >= {days_needed} AS by_day,
               median(weekly) AS of_week, median(daily) AS of_days,
               (percentile_cont(0.75) WITHIN GROUP (ORDER BY weekly)
                - percentile_cont(0.25) WITHIN GROUP (ORDER BY weekly)) / 1.349 AS spread
        FROM samples GROUP BY slot
    )"""  # noqa: S608


def usual_rows(rule: UsualRows, dialect: Dialect, *, is_date: bool) -> str:
    """The days whose number of rows is unusual, with that number and the usual one.

    A day is unusual by its weekday's profile if it is further from it than half of it and than five
    times the spread. By the days before, only less than a tenth is unusual, since a Sunday may have
    half of a Friday's rows. Days without any row count as 0. Days that are usually small are left
    out, and the newest one that is not, since it may still grow, with all after it: so no stray
    date is taken for today.

    The query reads the table alone, so a pinned version has the same result again. Only the
    declared names of a column and a zone are in it.
    """
    column = f"t.{dialect.quoted(rule.column)}"
    local = dialect.local_day(column, rule.zone)
    return f"""
    WITH counted AS (
        SELECT {column if is_date else local} AS slot, count(*) AS n
        FROM {{batch}} AS t WHERE {column} IS NOT NULL GROUP BY 1
    ), {profile(dialect, days_needed=DAYS_NEEDED)}, compared AS (
        SELECT profile.slot AS day, coalesce(n, 0) AS row_count, by_week, spread,
               CASE WHEN by_week THEN of_week ELSE of_days END AS usual
        FROM profile LEFT JOIN counted ON profile.slot = counted.slot
        WHERE (by_week OR by_day)
          AND profile.slot < (SELECT max(slot) FROM counted WHERE n >= {FEWEST})
    )
    SELECT day, row_count, usual FROM compared
    WHERE usual >= {FEWEST} AND CASE WHEN by_week
        THEN abs(row_count - usual) > 0.5 * usual AND abs(row_count - usual) > 5 * spread
        ELSE row_count < 0.1 * usual END
    """  # noqa: S608
