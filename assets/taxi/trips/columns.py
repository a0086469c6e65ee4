"""Columns that the published tables share: hours and days in both clocks, each described."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from assets.taxi.trips import new_york
from assets.taxi.trips.ingest import TLC

Described = tuple[str, DataType, str]
"""A column's name, its type, and what it holds."""

SUM: Final = DecimalType(18, 2)
COUNT: Final = LongType()
TEXT: Final = StringType()

HOUR: Final[tuple[Described, ...]] = (
    ("window_start", TimestampType(), "Start of the hour (UTC)."),
    ("window_end", TimestampType(), "End of the hour, exclusive (UTC)."),
    ("local_day", DateType(), "Date in New York."),
    ("local_hour", TEXT, "Hour in New York with its offset, which tells repeated hours apart."),
)
DAY: Final[tuple[Described, ...]] = (
    ("day_start", TimestampType(), "Midnight in New York at which the day begins (UTC)."),
    ("day_end", TimestampType(), "Midnight in New York at which it ends, exclusive (UTC)."),
    ("local_day", DateType(), "Date in New York."),
    ("hours_in_day", IntegerType(), "24; 23 or 25 on the days on which clocks change."),
)
SERVICE: Final[Described] = ("service", TEXT, "yellow or green; empty where nothing tells.")

HOURS_BY_DAY: Final = TLC.days("window_start")
DAYS_BY_DAY: Final = TLC.days("day_start")
"""Both tables are closed, checked and recomputed by days of New York, of 23 to 25 hours."""


def schema(*columns: Described) -> StructType:
    """A schema whose columns carry their descriptions as comments."""
    return StructType([StructField(n, kind, True, {"comment": c}) for n, kind, c in columns])


def hour_of(instant: Column) -> list[Column]:
    """The hour that holds an instant (UTC), as the columns of HOUR."""
    start = F.date_trunc("hour", instant)
    return [
        start.alias("window_start"),
        (start + F.expr("INTERVAL 1 HOUR")).alias("window_end"),
        new_york.local_day(start).alias("local_day"),
        new_york.local_hour(start).alias("local_hour"),
    ]


def day_of(instant: Column) -> list[Column]:
    """The New York day that holds an instant (UTC), as the columns of DAY."""
    day = new_york.local_day(instant)
    return [
        new_york.day_start(day).alias("day_start"),
        new_york.day_end(day).alias("day_end"),
        day.alias("local_day"),
        new_york.hours_in_day(day).alias("hours_in_day"),
    ]
