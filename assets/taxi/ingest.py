"""Ride, fare and trip events come in, as JSON lines that land while things happen."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from assets.taxi.event_suites import (
    FARE_EVENTS_SUITE,
    RIDE_EVENTS_SUITE,
    TRIP_EVENTS_SUITE,
)
from assets.taxi.fares import FARE_EVENT
from assets.taxi.rides import RIDE_EVENT
from assets.taxi.trip_events import TRIP_EVENT
from rivermark import FileSource
from rivermark.model.stream import Ingest
from rivermark.model.table import Daily

GROUP: Final = "taxi_events"
OWNERS: Final = ("team:taxi",)

LATENESS: Final = timedelta(seconds=60)
"""How far a ride or fare may lag behind the newest one: the delay that the training assumes."""

TRIP_LATENESS: Final = timedelta(minutes=5)
"""How far a replayed trip event may lag: a replay lands events in order, files at a high speed."""

SETTLE: Final = timedelta(milliseconds=200)
"""How long a file must be unchanged: these are written under another name and renamed."""

FIRST_DAY: Final = date(2020, 1, 1)
FIRST_TRIP_DAY: Final = date(2009, 1, 1)

RIDE_EVENTS: Final = Ingest(
    name="taxi/ride_events",
    source=FileSource(folder="taxi/rides", pattern="*.json,*.json.gz", settle=SETTLE),
    contract=RIDE_EVENT,
    lateness=LATENESS,
    description="The START and the END of each ride as they came, repeats among them.",
    group=GROUP,
    days=Daily(column="event_time", start=FIRST_DAY),
    personal=("driver_id", "taxi_id"),
    owners=OWNERS,
    suite=RIDE_EVENTS_SUITE,
)

FARE_EVENTS: Final = Ingest(
    name="taxi/fare_events",
    source=FileSource(folder="taxi/fares", pattern="*.json,*.json.gz", settle=SETTLE),
    contract=FARE_EVENT,
    lateness=LATENESS,
    description="What each ride cost, as it came, repeats among it.",
    group=GROUP,
    days=Daily(column="event_time", start=FIRST_DAY),
    personal=("driver_id", "taxi_id"),
    money="total_fare",
    owners=OWNERS,
    suite=FARE_EVENTS_SUITE,
)

TRIP_EVENTS: Final = Ingest(
    name="taxi/trip_events",
    source=FileSource(folder="taxi/trip_events", pattern="*.json,*.json.gz", settle=SETTLE),
    contract=TRIP_EVENT,
    lateness=TRIP_LATENESS,
    description="Recorded TLC trips, replayed as STARTs and ENDs in the order of their happening.",
    group=GROUP,
    days=Daily(column="event_time", start=FIRST_TRIP_DAY),
    owners=OWNERS,
    suite=TRIP_EVENTS_SUITE,
)
