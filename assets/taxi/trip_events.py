"""What a trip event is: a recorded TLC trip replayed as its START and its END."""

from __future__ import annotations

from typing import Final

from assets.taxi.fares import MONEY
from rivermark import Contract, Field, Rule

TRIP_EVENT: Final = Contract(
    fields=(
        Field("trip_id", "string", required=True, description="The record it was made from."),
        Field("is_start", "boolean", required=True, description="Whether this is the START."),
        Field(
            "event_time",
            "timestamp",
            required=True,
            description="When it happened (UTC): the pickup on a START, the dropoff on an END.",
        ),
        Field("pickup_zone", "int", description="Taxi zone of the pickup, 1 to 265."),
        Field("dropoff_zone", "int", description="Taxi zone of the dropoff, 1 to 265."),
        Field("passenger_count", "int", description="As the driver entered."),
        Field("fare", MONEY, description="Time and distance (USD); on the END only."),
        Field("tip", MONEY, description="Tip (USD); on the END only."),
        Field("total", MONEY, description="Charged in all (USD); on the END only."),
        Field("vendor", "int", description="Who recorded the trip."),
    ),
    event_time="event_time",
    keys=("trip_id", "is_start"),
    rules=(
        Rule(
            "no_zone",
            "CASE WHEN is_start THEN pickup_zone ELSE dropoff_zone END IS NULL",
            "quarantine",
            "An event that happened nowhere cannot be counted anywhere.",
        ),
    ),
)
