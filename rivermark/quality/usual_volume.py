"""A day's number of rows against a profile learned from the days before it, in one query.

The profile of a day is the median of the same weekday over eight weeks, where three of those days
have rows. A day is told when it is further from that than half of it, and than five times the usual
spread (that of the middle half of those days, scaled as for a normal distribution): neither follows
the odd day, as a mean would. Else it is the median of the fourteen days before, where three of
those have rows; since a Sunday may have half of a Friday's, only less than a tenth is told then.

Days without any row count as 0. Not judged are days that are usually small, and the newest one that
is not, since it may still grow, with all after it: so no stray date is taken for today.

The query reads the table alone, so a pinned version gives the same answer again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rivermark.model.question import UsualRows

FEWEST: Final = 20
"""Rows of a usual day below which chance alone makes large differences."""


@dataclass(frozen=True)
class Dialect:
    """What two engines write differently: the local day of a moment, and the numbers 1 to 56."""

    local_day: str
    steps: str


SPARK: Final = Dialect(
    "to_date(from_utc_timestamp({column}, '{zone}'))", "SELECT explode(sequence(1, 56)) AS k"
)
DUCKDB: Final = Dialect(
    "CAST(timezone('{zone}', {column}) AS DATE)",
    "SELECT CAST(unnest(range(1, 57)) AS INTEGER) AS k",
)


def usual_rows(asked: UsualRows, dialect: Dialect, *, is_date: bool) -> str:
    """The days whose number of rows is unusual, with that number and the usual one.

    Only the declared names of a column and a zone are in the query. Each day with rows speaks for
    the 56 after it: joined by equality, since Spark would compare every day with every other.
    """
    # By the table's name before it, a column may have the name of a word of SQL.
    column = f"t.{asked.column}"
    local = dialect.local_day.format(column=column, zone=asked.zone)
    return f"""
    WITH counted AS (
        SELECT {column if is_date else local} AS day, count(*) AS n
        FROM {{batch}} AS t WHERE {column} IS NOT NULL GROUP BY 1
    ), steps AS ({dialect.steps}),
    told AS (
        SELECT day + k AS day, CASE WHEN k % 7 = 0 THEN n END AS weekly,
               CASE WHEN k <= 14 THEN n END AS daily
        FROM counted CROSS JOIN steps
    ), profile AS (
        SELECT day, count(weekly) >= 3 AS by_week, count(daily) >= 3 AS by_day,
               median(weekly) AS of_week, median(daily) AS of_days,
               (percentile_cont(0.75) WITHIN GROUP (ORDER BY weekly)
                - percentile_cont(0.25) WITHIN GROUP (ORDER BY weekly)) / 1.349 AS spread
        FROM told GROUP BY day
    ), judged AS (
        SELECT profile.day AS day, coalesce(n, 0) AS row_count, by_week, spread,
               CASE WHEN by_week THEN of_week ELSE of_days END AS usual
        FROM profile LEFT JOIN counted ON profile.day = counted.day
        WHERE (by_week OR by_day)
          AND profile.day < (SELECT max(day) FROM counted WHERE n >= {FEWEST})
    )
    SELECT day, row_count, usual FROM judged
    WHERE usual >= {FEWEST} AND CASE WHEN by_week
        THEN abs(row_count - usual) > 0.5 * usual AND abs(row_count - usual) > 5 * spread
        ELSE row_count < 0.1 * usual END
    """  # noqa: S608
