"""The month that a file says it holds: 'green_tripdata_2022-01.parquet' is January 2022.

All of it is SQL of rules (rivermark.Rule).
"""

from __future__ import annotations

from typing import Final

from assets.taxi.trips.new_york import day_of

NUMBERS: Final = "[0-9]+(?:-[0-9]+)*"
"""Numbers that are joined by dashes, such as 2022-01."""
MONTH: Final = "(?:^|-)20[0-9]{2}-(?:0[1-9]|1[0-2])$"
"""A year and month at their end, which is not the beginning of a full date (the day of a download,
say)."""

MARGIN_DAYS: Final = 7
"""How far beside its file's month a pickup is still believed.

Records are handed in late: each green file seen holds a few of the days before (2023-12 reaches
back to 24 November, seven days). Stray clocks go further: 2009 in 2022-01, 12 April in 2019-03.
"""


def file_month(file: str) -> str:
    """First day of the month in a file's name; null where the name has no month, or several."""
    name = f"regexp_extract({file}, '[^/]*$')"
    months = (
        f"list_filter(regexp_extract_all({name}, '{NUMBERS}'), "
        f"lambda numbers: regexp_matches(numbers, '{MONTH}'))"
    )
    return f"CASE WHEN len({months}) = 1 THEN CAST(right({months}[1], 7) || '-01' AS DATE) END"


def is_outside(pickup: str, file: str) -> str:
    """Whether a pickup (UTC) lies more than MARGIN_DAYS before or after its file's month."""
    first, day = f"({file_month(file)})", day_of(pickup)
    return (
        f"({day} < {first} - {MARGIN_DAYS} "
        f"OR {day} >= {first} + INTERVAL 1 MONTH + INTERVAL {MARGIN_DAYS} DAYS)"
    )


def is_beside(pickup: str, file: str) -> str:
    """Whether a pickup (UTC) lies beside its file's month, but no more than MARGIN_DAYS."""
    first, day = f"({file_month(file)})", day_of(pickup)
    return (
        f"({day} < {first} OR {day} >= {first} + INTERVAL 1 MONTH) "
        f"AND NOT {is_outside(pickup, file)}"
    )
