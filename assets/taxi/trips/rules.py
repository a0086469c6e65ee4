"""What is wrong with real trip records, by name.

Only what cannot be placed in time is quarantined. Everything else stays, flagged, because negative
totals are refunds, zero passengers are what drivers enter, and a rule that drops such rows drops
thousands unseen. Each aggregation says which flags it leaves out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from assets.taxi.trips import file_month, new_york, service, zones
from rivermark import Rule

FIRST_YEAR: Final = 2009
"""TLC publishes trip records from 2009 on."""
LONGEST_MILES: Final = 100
LONG_HOURS: Final = 2
METER_HOURS: Final = 23
"""A meter left on until the next shift: real files have a heap of trips just below 24 hours."""
MOST_PASSENGERS: Final = 6
UNKNOWN_RATE: Final = 99

AMOUNTS: Final = (
    "fare",
    "extra",
    "mta_tax",
    "tip",
    "tolls",
    "improvement_surcharge",
    "congestion_surcharge",
    "airport_fee",
    "cbd_congestion_fee",
    "total",
)


HIRE_CARS: Final = r'(?i)"(dispatching_base|affiliated_base|hvfhs_license)'
"""Columns of for-hire vehicles, whose other columns are in part spelled as those of taxis."""


def _length_hours() -> Column:
    return (F.unix_timestamp("dropoff_at") - F.unix_timestamp("pickup_at")) / 3600


def _any_negative() -> Column:
    return F.least(*[F.col(name) for name in AMOUNTS]) < 0


def _at_an_end(says: Callable[[Column, Column], Column]) -> Column:
    pickup = says(F.col("pickup_at"), F.col("pickup_local"))
    return pickup | says(F.col("dropoff_at"), F.col("dropoff_local"))


QUARANTINED: Final = (
    Rule(
        "outside_file_month",
        lambda: file_month.is_outside(F.col("pickup_at"), F.col("_file")),
        "quarantine",
        f"Pickup more than {file_month.MARGIN_DAYS} days beside the month in the file's name.",
    ),
    Rule(
        "stray_year",
        lambda: (
            new_york.local_day(F.col("pickup_at"))
            < F.make_date(F.lit(FIRST_YEAR), F.lit(1), F.lit(1))
        ),
        "quarantine",
        f"Pickup before {FIRST_YEAR}, when TLC's records begin.",
    ),
    Rule(
        "hire_car_record",
        lambda: F.col("_columns").rlike(HIRE_CARS),
        "quarantine",
        "A record of a for-hire vehicle: its fares and fees are other ones than those of taxis.",
    ),
)

IN_TIME: Final = (
    Rule(
        "beside_file_month",
        lambda: file_month.is_beside(F.col("pickup_at"), F.col("_file")),
        "flag",
        f"Pickup up to {file_month.MARGIN_DAYS} days beside the month in the file's name.",
    ),
    Rule(
        "ambiguous_local_time",
        lambda: _at_an_end(new_york.is_ambiguous),
        "flag",
        "Pickup or dropoff in the hour that the autumn change repeats, read as its first pass.",
    ),
    Rule(
        "skipped_local_time",
        lambda: _at_an_end(new_york.is_skipped),
        "flag",
        "Pickup or dropoff in the hour that the spring change skips, moved forward by it.",
    ),
    Rule(
        "dropoff_before_pickup",
        lambda: F.col("dropoff_at") < F.col("pickup_at"),
        "flag",
        "Dropoff earlier than pickup.",
    ),
    Rule(
        "zero_length",
        lambda: F.col("dropoff_at") == F.col("pickup_at"),
        "flag",
        "Dropoff in the second of the pickup.",
    ),
    Rule("long_trip", lambda: _length_hours() > LONG_HOURS, "flag", "Longer than 2 hours."),
    Rule(
        "meter_left_on",
        lambda: _length_hours() >= METER_HOURS,
        "flag",
        "23 hours or longer: the meter was left on. Also flagged long_trip.",
    ),
)

IN_VALUE: Final = (
    Rule(
        "negative_amount",
        _any_negative,
        "flag",
        "An amount below zero: a refund, or a flex fare.",
    ),
    Rule(
        "refund",
        lambda: F.col("total") < 0,
        "flag",
        "A total below zero: money is given back, mostly in a second record of the trip.",
    ),
    Rule(
        "flex_fare",
        lambda: (F.col("fare") < 0) & (F.col("total") >= 0),
        "flag",
        "A fare below zero within a total that is not: a trip at a price that was agreed before.",
    ),
    Rule(
        "absurd_distance",
        lambda: (F.col("distance_miles") > LONGEST_MILES) | (F.col("distance_miles") < 0),
        "flag",
        f"More than {LONGEST_MILES} miles, or less than none.",
    ),
    Rule("zero_distance", lambda: F.col("distance_miles") == 0, "flag", "A distance of 0 miles."),
    Rule("zero_passengers", lambda: F.col("passengers") == 0, "flag", "No passengers entered."),
    Rule(
        "too_many_passengers",
        lambda: (F.col("passengers") > MOST_PASSENGERS) | (F.col("passengers") < 0),
        "flag",
        f"More than {MOST_PASSENGERS} passengers, or less than none.",
    ),
    Rule(
        "unknown_rate_code",
        lambda: F.col("rate_code") == UNKNOWN_RATE,
        "flag",
        "Rate code 99, a marker that TLC's dictionary does not explain.",
    ),
    Rule(
        "unknown_pickup_zone",
        lambda: zones.is_unknown(F.col("pickup_zone_id")),
        "flag",
        "Pickup zone 264, 265, or outside 1 to 265.",
    ),
    Rule(
        "unknown_dropoff_zone",
        lambda: zones.is_unknown(F.col("dropoff_zone_id")),
        "flag",
        "Dropoff zone 264, 265, or outside 1 to 265.",
    ),
    Rule(
        "unknown_service",
        lambda: service.service_of(F.col("color"), F.col("_file")).isNull(),
        "flag",
        "Neither a colour column nor the file's path says yellow or green.",
    ),
)

FLAGGED: Final = (*IN_TIME, *IN_VALUE)
RULES: Final = (*QUARANTINED, *FLAGGED)
"""In the order in which reasons and flags are listed."""
