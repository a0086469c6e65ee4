"""What a fare event is: what one ride cost. Amounts are US dollars with two places."""

from __future__ import annotations

from typing import Final

from rivermark import Contract, Field, Rule

MONEY: Final = "decimal(12,2)"
SUM: Final = "decimal(22,2)"
"""Of amounts: as wide as Spark makes it, with room for any of them."""

FARE_EVENT: Final = Contract(
    fields=(
        Field("ride_id", "long", required=True, description="The ride that was paid for."),
        Field("taxi_id", "long", required=True, description="The car."),
        Field("driver_id", "long", required=True, description="The driver."),
        Field("event_time", "timestamp", required=True, description="Start of the ride (UTC)."),
        Field("payment_type", "string", required=True, description="CARD or CASH."),
        Field("tip", MONEY, required=True, description="Tip (USD)."),
        Field("tolls", MONEY, required=True, description="Tolls (USD)."),
        Field(
            "total_fare", MONEY, required=True, description="All in all, tip and tolls included."
        ),
    ),
    event_time="event_time",
    keys=("ride_id",),
    rules=(
        Rule(
            "negative_amount",
            "tip < 0 OR tolls < 0 OR total_fare < 0",
            "quarantine",
            "No fare pays the passenger.",
        ),
    ),
)
