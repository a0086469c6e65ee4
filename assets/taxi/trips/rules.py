"""What is wrong with real trip records, by name.

Only what cannot be placed in time is quarantined. Everything else stays, flagged, because negative
totals are refunds, zero passengers are what drivers enter, and a rule that drops such rows drops
thousands unseen. Each aggregation says which flags it leaves out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

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


HIRE_CARS: Final = r'(?i)"((dispatching|affiliated|originating)[ _]?base|hvfhs[ _]?license)'
"""Columns of for-hire vehicles, whose other columns are in part spelled as those of taxis; in any
case, and with a blank or nothing for a `_`."""


def _at_an_end(says: Callable[[str, str], str]) -> str:
    return f"{says('pickup_at', 'pickup_local')} OR {says('dropoff_at', 'dropoff_local')}"


QUARANTINED: Final = (
    Rule(
        "outside_file_month",
        file_month.is_outside("pickup_at", "_file"),
        "quarantine",
        f"Pickup more than {file_month.MARGIN_DAYS} days beside the month in the file's name.",
    ),
    Rule(
        "stray_year",
        f"{new_york.day_of('pickup_at')} < DATE '{FIRST_YEAR}-01-01'",
        "quarantine",
        f"Pickup before {FIRST_YEAR}, when TLC's records begin.",
    ),
    Rule(
        "hire_car_record",
        f"regexp_matches(_columns, '{HIRE_CARS}')",
        "quarantine",
        "A record of a for-hire vehicle: its fares and fees are other ones than those of taxis.",
    ),
)

IN_TIME: Final = (
    Rule(
        "beside_file_month",
        file_month.is_beside("pickup_at", "_file"),
        "flag",
        f"Pickup up to {file_month.MARGIN_DAYS} days beside the month in the file's name.",
    ),
    Rule(
        "ambiguous_local_time",
        _at_an_end(new_york.is_ambiguous),
        "flag",
        "Pickup or dropoff in the hour that the autumn change repeats, read as its first pass.",
    ),
    Rule(
        "skipped_local_time",
        _at_an_end(new_york.is_skipped),
        "flag",
        "Pickup or dropoff in the hour that the spring change skips, moved forward by it.",
    ),
    Rule(
        "dropoff_before_pickup",
        "dropoff_at < pickup_at",
        "flag",
        "Dropoff earlier than pickup.",
    ),
    Rule(
        "zero_length",
        "dropoff_at = pickup_at",
        "flag",
        "Dropoff in the second of the pickup.",
    ),
    Rule(
        "long_trip",
        f"dropoff_at - pickup_at > INTERVAL {LONG_HOURS} HOURS",
        "flag",
        f"Longer than {LONG_HOURS} hours.",
    ),
    Rule(
        "meter_left_on",
        f"dropoff_at - pickup_at >= INTERVAL {METER_HOURS} HOURS",
        "flag",
        "23 hours or longer: the meter was left on. Also flagged long_trip.",
    ),
)

IN_VALUE: Final = (
    Rule(
        "negative_amount",
        f"least({', '.join(AMOUNTS)}) < 0",
        "flag",
        "An amount below zero: a refund, or a flex fare.",
    ),
    Rule(
        "refund",
        "total < 0",
        "flag",
        "A total below zero: money is given back, mostly in a second record of the trip.",
    ),
    Rule(
        "flex_fare",
        "fare < 0 AND total >= 0",
        "flag",
        "A fare below zero within a total that is not: a trip at a price that was agreed before.",
    ),
    Rule(
        "absurd_distance",
        f"distance_miles NOT BETWEEN 0 AND {LONGEST_MILES}",
        "flag",
        f"More than {LONGEST_MILES} miles, or less than none.",
    ),
    Rule("zero_distance", "distance_miles = 0", "flag", "A distance of 0 miles."),
    Rule("zero_passengers", "passengers = 0", "flag", "No passengers entered."),
    Rule(
        "too_many_passengers",
        f"passengers NOT BETWEEN 0 AND {MOST_PASSENGERS}",
        "flag",
        f"More than {MOST_PASSENGERS} passengers, or less than none.",
    ),
    Rule(
        "unknown_rate_code",
        f"rate_code = {UNKNOWN_RATE}",
        "flag",
        "Rate code 99, a marker that TLC's dictionary does not explain.",
    ),
    Rule(
        "unknown_pickup_zone",
        zones.is_unknown("pickup_zone_id"),
        "flag",
        "Pickup zone 264, 265, or outside 1 to 265.",
    ),
    Rule(
        "unknown_dropoff_zone",
        zones.is_unknown("dropoff_zone_id"),
        "flag",
        "Dropoff zone 264, 265, or outside 1 to 265.",
    ),
    Rule(
        "unknown_service",
        service.is_unknown("color", "_file"),
        "flag",
        "Neither a colour column nor the file's path says yellow or green.",
    ),
)

FLAGGED: Final = (*IN_TIME, *IN_VALUE)
RULES: Final = (*QUARANTINED, *FLAGGED)
"""In the order in which reasons and flags are listed."""
