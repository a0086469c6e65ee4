"""What the published tables count and sum, in one place, so that 'trips' means the same in each.

Trips are records that are not surplus: a refunded or repeated trip counts once. Amounts are summed
over all records but repeats, so a refund, being negative, takes back what it refunds. A sum over
nothing but empties is empty, not 0.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from assets.taxi.trips.columns import COUNT, SUM, Described

RECORDS: Final[Described] = ("records", COUNT, "Records, repeats and refunds among them.")
TRIPS: Final[Described] = ("trips", COUNT, "Trips by pickup time: records less surplus ones.")
REPEATS: Final[Described] = ("repeats", COUNT, "Records equal to an earlier one; in no sum.")
SURPLUS: Final[Described] = (
    "surplus",
    COUNT,
    "Further records of a trip counted already: refunds, repeats, corrections.",
)
REFUNDS: Final[Described] = (
    "refunds",
    COUNT,
    "Records of negative fare and total beside a positive fare of the same trip, no repeats.",
)
FLAGGED: Final[Described] = ("flagged", COUNT, "Trips among them with any flag; see taxi/trips.")
FARE: Final[Described] = ("fare", SUM, "Fares (USD), refunds taken off, repeats left out.")
TIPS: Final[Described] = ("tips", SUM, "Tips (USD), refunds taken off, repeats left out.")
REVENUE: Final[Described] = (
    "revenue",
    SUM,
    "Charged in all (USD, no cash tips), refunds taken off, repeats left out.",
)
UNPRICED: Final[Described] = (
    "unpriced",
    COUNT,
    "Trips whose records lack the total (extracts): they are in trips and not in revenue.",
)


def is_trip() -> Column:
    """Whether a marked record stands for its trip."""
    return ~F.col("is_surplus")


def is_counted() -> Column:
    """Whether a marked record's amounts are summed."""
    return ~F.col("is_repeat")


def is_flagged(rule: str) -> Column:
    """Whether a record was flagged by the rule of that name."""
    return F.array_contains("flags", rule)


def count_of(condition: Column) -> Column:
    """How many records of a group meet a condition."""
    return F.count_if(condition)


def sum_of(amount: str) -> Column:
    """An amount (USD) summed over a group's records but repeats."""
    return F.sum(F.when(is_counted(), F.col(amount))).cast(SUM)


def summary() -> list[Column]:
    """Trips and money of a group of marked records, as the columns of SUMMARY."""
    return [
        count_of(is_trip()).alias("trips"),
        count_of(F.col("is_surplus")).alias("surplus"),
        count_of(is_trip() & (F.size("flags") > 0)).alias("flagged"),
        count_of(is_trip() & F.col("total").isNull()).alias("unpriced"),
        sum_of("fare").alias("fare"),
        sum_of("total").alias("revenue"),
    ]


SUMMARY: Final = (TRIPS, SURPLUS, FLAGGED, UNPRICED, FARE, REVENUE)
"""The columns that `summary` gives."""
