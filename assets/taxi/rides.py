"""What a ride event is: the START or the END of one taxi ride.

Rides may arrive out of order, an END before its START; either may be lost, or come twice.
"""

from __future__ import annotations

from typing import Final

from rivermark import Contract, Field, Rule

IDENTITY: Final = (
    Field("ride_id", "long", required=True, description="The ride; its START and END share it."),
    Field("is_start", "boolean", required=True, description="Whether this is the START."),
    Field(
        "event_time",
        "timestamp",
        required=True,
        description="When it happened (UTC): the start of the ride on a START, its end on an END.",
    ),
)

COURSE: Final = (
    Field("start_time", "timestamp", required=True, description="Start of the ride (UTC)."),
    Field("end_time", "timestamp", description="End of the ride (UTC); empty on a START."),
    Field("start_lon", "double", required=True, description="Start, degrees east."),
    Field("start_lat", "double", required=True, description="Start, degrees north."),
    Field("end_lon", "double", required=True, description="Destination, degrees east."),
    Field("end_lat", "double", required=True, description="Destination, degrees north."),
)

CREW: Final = (
    Field("passenger_count", "int", description="Passengers."),
    Field("taxi_id", "long", required=True, description="The car."),
    Field("driver_id", "long", required=True, description="The driver."),
)

RULES: Final = (
    Rule(
        "coordinates_out_of_range",
        "abs(start_lon) > 180 OR abs(end_lon) > 180 OR abs(start_lat) > 90 OR abs(end_lat) > 90",
        "quarantine",
        "A place that is not on Earth.",
    ),
    Rule(
        "end_without_end_time",
        "NOT is_start AND end_time IS NULL",
        "quarantine",
        "An END must say when the ride ended.",
    ),
    Rule(
        "start_with_end_time",
        "is_start AND end_time IS NOT NULL",
        "quarantine",
        "A START cannot know the end: most likely an END with the wrong mark.",
    ),
    Rule(
        "ends_before_it_starts",
        "end_time < start_time",
        "quarantine",
        "The ride would have lasted less than no time.",
    ),
)

RIDE_EVENT: Final = Contract(
    fields=(*IDENTITY, *COURSE, *CREW),
    event_time="event_time",
    keys=("ride_id", "is_start"),
    rules=RULES,
)
