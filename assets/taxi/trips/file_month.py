"""The month that a file says it holds: 'green_tripdata_2022-01.parquet' is January 2022."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from assets.taxi.trips.new_york import local_day

MONTH: Final = r"(?<![0-9])(20[0-9]{2}-(?:0[1-9]|1[0-2]))(?!-?[0-9])"
"""A year and month that is not the beginning of a full date (the day of a download, say)."""

MARGIN_DAYS: Final = 7
"""How far beside its file's month a pickup is still believed.

Records are handed in late: each green file seen holds a few of the days before (2023-12 reaches
back to 24 November, seven days). Stray clocks go further: 2009 in 2022-01, 12 April in 2019-03.
"""


def file_month(file: Column) -> Column:
    """First day of the month in a file's name; null where the name has no month, or several."""
    name = F.regexp_extract(file, r"([^/]*)$", 1)
    months = F.regexp_extract_all(name, F.lit(MONTH), F.lit(1))
    return F.when(F.size(months) == 1, F.to_date(F.concat(F.get(months, F.lit(0)), F.lit("-01"))))


def is_outside(pickup: Column, file: Column) -> Column:
    """Whether a pickup (UTC) lies more than MARGIN_DAYS before or after its file's month."""
    first, day = file_month(file), local_day(pickup)
    return (day < F.date_sub(first, MARGIN_DAYS)) | (
        day >= F.date_add(F.add_months(first, 1), MARGIN_DAYS)
    )


def is_beside(pickup: Column, file: Column) -> Column:
    """Whether a pickup (UTC) lies beside its file's month, but no more than MARGIN_DAYS."""
    first, day = file_month(file), local_day(pickup)
    return ((day < first) | (day >= F.add_months(first, 1))) & ~is_outside(pickup, file)
