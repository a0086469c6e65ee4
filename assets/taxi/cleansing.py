"""Each ride and fare event once, and of the rides those inside the city.

Rides and fares may come twice, and a repeat may carry another time. A ride's START and END share
their coordinates, so both stay or both go.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from assets.taxi.event_suites import CLEAN_FARES_SUITE, CLEAN_RIDES_SUITE, RIDES_OUTSIDE_SUITE
from assets.taxi.fares import FARE_EVENT
from assets.taxi.grid import cell, in_city
from assets.taxi.ingest import FARE_EVENTS, FIRST_DAY, GROUP, LATENESS, OWNERS, RIDE_EVENTS
from assets.taxi.rides import RIDE_EVENT
from rivermark.model.stream import Output, Stream
from rivermark.model.table import Daily, Table
from rivermark.operators.first_of_each import first_of_each

RIDE: Final = tuple(StructField(f.name, f.type, True) for f in RIDE_EVENT.fields)
CELLS: Final = tuple(StructField(c, IntegerType(), True) for c in ("start_cell", "end_cell"))

CLEAN_RIDES_TABLE: Final = Table(
    name="taxi/clean_rides",
    schema=StructType([*RIDE, *CELLS]),
    description="Ride events inside New York, each once, with the grid cells of start and end.",
    event_time="event_time",
    keys=RIDE_EVENT.keys,
    days=Daily(column="event_time", start=FIRST_DAY),
    personal=("driver_id", "taxi_id"),
)

RIDES_OUTSIDE: Final = Table(
    name="taxi/rides_outside_city",
    schema=StructType([*RIDE, StructField("outside", StringType(), True)]),
    description="Ride events set aside because their start, end or both lie outside New York.",
    event_time="event_time",
    keys=RIDE_EVENT.keys,
    days=Daily(column="event_time", start=FIRST_DAY),
    personal=("driver_id", "taxi_id"),
)


def cleanse_rides(ride_events: DataFrame) -> DataFrame:
    """Each ride event once, with its cells; `outside` names its ends outside the city, if any."""
    repeats = first_of_each(*RIDE_EVENT.keys, event_time="event_time", within=LATENESS)
    starts_in, ends_in = in_city("start_lon", "start_lat"), in_city("end_lon", "end_lat")
    return ride_events.transform(repeats).select(
        *[f.name for f in RIDE],
        cell("start_lon", "start_lat").alias("start_cell"),
        cell("end_lon", "end_lat").alias("end_cell"),
        F.when(~starts_in & ~ends_in, "start and end")
        .when(~starts_in, "start")
        .when(~ends_in, "end")
        .alias("outside"),
    )


def cleanse_fares(fare_events: DataFrame) -> DataFrame:
    """Each fare once."""
    repeats = first_of_each(*FARE_EVENT.keys, event_time="event_time", within=LATENESS)
    return fare_events.transform(repeats).select(*[f.name for f in FARE_EVENT.fields])


CLEAN_RIDES: Final = Stream(
    name="taxi/clean_rides",
    reads=(RIDE_EVENTS,),
    build=cleanse_rides,
    writes=(
        Output(CLEAN_RIDES_TABLE, lambda: F.col("outside").isNull()),
        Output(RIDES_OUTSIDE, lambda: F.col("outside").isNotNull(), RIDES_OUTSIDE_SUITE),
    ),
    description=CLEAN_RIDES_TABLE.description,
    group=GROUP,
    volume="events",
    lateness=LATENESS,
    margin=LATENESS,
    suite=CLEAN_RIDES_SUITE,
    owners=OWNERS,
)

EACH_FARE_ONCE: Final = "What each ride cost, each fare once, wherever its ride went."

CLEAN_FARES: Final = Stream(
    name="taxi/clean_fares",
    reads=(FARE_EVENTS,),
    build=cleanse_fares,
    writes=Table(
        name="taxi/clean_fares",
        schema=StructType([StructField(f.name, f.type, True) for f in FARE_EVENT.fields]),
        description=EACH_FARE_ONCE,
        event_time="event_time",
        keys=FARE_EVENT.keys,
        days=Daily(column="event_time", start=FIRST_DAY),
        personal=("driver_id", "taxi_id"),
    ),
    description=EACH_FARE_ONCE,
    group=GROUP,
    volume="events",
    lateness=LATENESS,
    margin=LATENESS,
    suite=CLEAN_FARES_SUITE,
    owners=OWNERS,
)
