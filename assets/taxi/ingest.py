"""Ride, fare and trip events come in, as JSON lines that land while things happen.

Where the environment names Kafka brokers as TAXI_KAFKA, they come from topics instead of folders.
"""

from __future__ import annotations

import os
from datetime import date, timedelta
from typing import Final

from assets.taxi.fares import FARE_EVENT
from assets.taxi.rides import RIDE_EVENT
from assets.taxi.trip_events import TRIP_EVENT
from assets.taxi.trips.zones import LAST as LAST_ZONE
from rivermark import Domain, Expectation, expect
from rivermark.sources import FileSource, KafkaSource, Source

LATENESS: Final = timedelta(seconds=60)
"""How far a ride or fare may lag behind the newest one: the delay that the training assumes."""

TRIP_LATENESS: Final = timedelta(minutes=5)
"""How far a replayed trip event may lag: a replay lands events in order, files at a high speed."""

SETTLE: Final = timedelta(milliseconds=200)
"""How long a file must be unchanged: these are written under another name and renamed."""

BROKERS: Final = "TAXI_KAFKA"
"""The variable of the environment that names the brokers of topics, where there are any."""

FIRST_DAY: Final = date(2020, 1, 1)
FIRST_TRIP_DAY: Final = date(2009, 1, 1)

TAXI: Final = Domain("taxi_events", owners=("team:taxi",), first_day=FIRST_DAY)
PERSONAL: Final = ("driver_id", "taxi_id")

ONLY_AN_END_HAS_AN_END: Final = expect.no_rows_where(
    "is_start = (end_time IS NOT NULL)", name="only an END has an end"
)
NO_NEGATIVE_PART: Final[Expectation] = (*expect.between("tip", 0), *expect.between("tolls", 0))
PLAUSIBLE_FARE: Final[Expectation] = (
    *expect.in_set("payment_type", ("CARD", "CASH"), severity="warning"),
    *expect.no_rows_where(
        "total_fare < tip + tolls", name="the total covers its parts", severity="warning"
    ),
)


def events_of(folder: str) -> Source:
    """The files of a folder, or the topic of its name at the brokers that the environment names."""
    if os.environ.get(BROKERS):
        return KafkaSource(brokers=f"${BROKERS}", topics=folder.replace("/", "."))
    return FileSource(folder=folder, pattern="*.json,*.json.gz", settle=SETTLE)


RIDE_EVENTS: Final = TAXI.ingest(
    "taxi/ride_events",
    source=events_of("taxi/rides"),
    contract=RIDE_EVENT,
    lateness=LATENESS,
    description="The START and the END of each ride as they came, repeats among them.",
    days="event_time",
    personal=PERSONAL,
    expect=[
        ONLY_AN_END_HAS_AN_END,
        expect.pair_ordered("start_time", "end_time", allow_null_share=1.0),
        expect.between("start_lon", -180, 180),
        expect.between("start_lat", -90, 90),
        expect.between("end_lon", -180, 180),
        expect.between("end_lat", -90, 90),
        expect.between("passenger_count", 0, 9, allow_null_share=0.05, severity="warning"),
    ],
)

FARE_EVENTS: Final = TAXI.ingest(
    "taxi/fare_events",
    source=events_of("taxi/fares"),
    contract=FARE_EVENT,
    lateness=LATENESS,
    description="What each ride cost, as it came, repeats among it.",
    days="event_time",
    personal=PERSONAL,
    money="total_fare",
    expect=[
        NO_NEGATIVE_PART,
        expect.between("total_fare", 0),
        PLAUSIBLE_FARE,
    ],
)

TRIP_EVENTS: Final = TAXI.ingest(
    "taxi/trip_events",
    source=events_of("taxi/trip_events"),
    contract=TRIP_EVENT,
    lateness=TRIP_LATENESS,
    description=(
        "Recorded TLC trips, replayed as STARTs and ENDs in the order of their happening."
    ),
    days=TAXI.days("event_time", start=FIRST_TRIP_DAY),
    expect=[
        expect.no_rows_where(
            "CASE WHEN is_start THEN pickup_zone ELSE dropoff_zone END IS NULL",
            name="an event has a zone",
        ),
        expect.between("pickup_zone", 1, LAST_ZONE, allow_null_share=1.0, severity="warning"),
        expect.between("dropoff_zone", 1, LAST_ZONE, allow_null_share=1.0, severity="warning"),
        expect.no_rows_where(
            "is_start AND total IS NOT NULL", name="only an END knows what was charged"
        ),
    ],
)
