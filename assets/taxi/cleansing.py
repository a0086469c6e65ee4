"""Each ride and fare event once, and of the rides those inside the city.

Rides and fares may come twice, and a repeat may carry another time. A ride's START and END share
their coordinates, so both are kept or both are dropped.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from assets.taxi.fares import FARE_EVENT
from assets.taxi.grid import EAST, LAST_CELL, NORTH, SOUTH, WEST, cell, in_city
from assets.taxi.ingest import (
    FARE_EVENTS,
    LATENESS,
    NO_NEGATIVE_PART,
    ONLY_AN_END_HAS_AN_END,
    PERSONAL,
    PLAUSIBLE_FARE,
    RIDE_EVENTS,
    TAXI,
)
from assets.taxi.rides import RIDE_EVENT
from rivermark import Output, Suite, columns, expect
from rivermark.operators import first_of_each

RIDE: Final = RIDE_EVENT.columns()
CELLS: Final = columns(
    "start_cell int COMMENT 'Grid cell (about 100 m wide) of the start.', "
    "end_cell int COMMENT 'Grid cell (about 100 m wide) of the destination.'"
)
OUTSIDE: Final = columns(
    "outside string COMMENT 'Which ends lie outside the city: start, end, or start and end.'"
)

CLEAN_RIDES_TABLE: Final = TAXI.table(
    "taxi/clean_rides",
    StructType([*RIDE, *CELLS]),
    description=("Ride events inside New York, each once, with the grid cells of start and end."),
    keys=RIDE_EVENT.keys,
    personal=PERSONAL,
)

RIDES_OUTSIDE: Final = TAXI.table(
    "taxi/rides_outside_city",
    StructType([*RIDE, *OUTSIDE]),
    description="Ride events left out because their start, end or both lie outside New York.",
    keys=RIDE_EVENT.keys,
    personal=PERSONAL,
)


def cleanse_rides(ride_events: DataFrame) -> DataFrame:
    """Each ride event once, with its cells; `outside` names its ends outside the city, if any."""
    repeats = first_of_each(*RIDE_EVENT.keys, event_time="event_time", within=LATENESS)
    starts_in, ends_in = in_city("start_lon", "start_lat"), in_city("end_lon", "end_lat")
    return ride_events.transform(repeats).select(
        *RIDE.names,
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
    return fare_events.transform(repeats).select(*FARE_EVENT.columns().names)


CLEAN_RIDES: Final = TAXI.stream(
    reads=RIDE_EVENTS,
    build=cleanse_rides,
    writes=(
        Output(CLEAN_RIDES_TABLE, lambda: F.col("outside").isNull()),
        Output(
            RIDES_OUTSIDE,
            lambda: F.col("outside").isNotNull(),
            Suite(
                expectations=(
                    expect.no_rows_where(
                        f"start_lon BETWEEN {WEST} AND {EAST} AND end_lon BETWEEN {WEST} AND "
                        f"{EAST} AND start_lat BETWEEN {SOUTH} AND {NORTH} AND "
                        f"end_lat BETWEEN {SOUTH} AND {NORTH}",
                        name="one end lies outside the city",
                    ),
                ),
                may_be_empty=True,
            ),
        ),
    ),
    volume="events",
    lateness=LATENESS,
    margin=LATENESS,
    expect=[
        expect.unique(("ride_id", "is_start")),
        expect.between("start_lon", WEST, EAST),
        expect.between("end_lon", WEST, EAST),
        expect.between("start_lat", SOUTH, NORTH),
        expect.between("end_lat", SOUTH, NORTH),
        expect.between("start_cell", 0, LAST_CELL),
        expect.between("end_cell", 0, LAST_CELL),
        ONLY_AN_END_HAS_AN_END,
        expect.between("passenger_count", 1, 6, allow_null_share=0.05, severity="warning"),
    ],
    may_be_empty=False,
)

CLEAN_FARES: Final = TAXI.stream(
    "taxi/clean_fares",
    FARE_EVENT.columns(),
    reads=FARE_EVENTS,
    build=cleanse_fares,
    description="What each ride cost, each fare once, wherever its ride went.",
    keys=FARE_EVENT.keys,
    personal=PERSONAL,
    volume="events",
    lateness=LATENESS,
    margin=LATENESS,
    expect=[
        expect.unique("ride_id"),
        NO_NEGATIVE_PART,
        PLAUSIBLE_FARE,
    ],
    may_be_empty=False,
)
