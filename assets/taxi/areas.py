"""Rides that start within named areas. Nothing is remembered from one to the next.

Areas are a lookup: what lands in its folder counts from its own time on, without a restart. An
area's grid cells are joined to the cell of a ride's start, and its borders then decide. The alerts
go to a topic, and wait for no batch there.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.taxi.grid import EAST, NORTH, SOUTH, WEST, cell, cells
from assets.taxi.ingest import BROKERS, FIRST_DAY, RIDE_EVENTS
from rivermark import Contract, Domain, Field, Ingest, Output, Rule, Stream, columns, expect
from rivermark.operators import validity
from rivermark.sinks import RealTimeSink
from rivermark.sources import FileSource

TOPIC: Final = "TAXI_AREA_ALERTS"
"""The variable of the environment that names the topic of the alerts, where there is one."""
WANTED: Final = bool(os.environ.get(BROKERS) and os.environ.get(TOPIC))

ALERTS: Final = Domain("taxi_alerts", owners=("team:taxi",), first_day=FIRST_DAY)
BORDERS: Final = ("west", "east", "south", "north")

AREA: Final = Contract(
    fields=(
        Field("area", "string", required=True, description="Its name."),
        Field("since", "timestamp", required=True, description="From when on (UTC)."),
        Field("west", "double", description="Degrees east; all four empty: no area any more."),
        Field("east", "double", description="Degrees east, as large as `west` at least."),
        Field("south", "double", description="Degrees north."),
        Field("north", "double", description="Degrees north, as large as `south` at least."),
    ),
    event_time="since",
    rules=(
        Rule(
            "some_borders_missing",
            "len(list_filter([west, east, south, north], lambda border: border IS NOT NULL)) "
            "BETWEEN 1 AND 3",
            "quarantine",
            "An area has four borders, or none where it ends.",
        ),
        Rule(
            "borders_exchanged",
            "west > east OR south > north",
            "quarantine",
            "Nothing would lie within.",
        ),
        Rule(
            "area_outside_city",
            f"west NOT BETWEEN {WEST} AND {EAST} OR east NOT BETWEEN {WEST} AND {EAST} "
            f"OR south NOT BETWEEN {SOUTH} AND {NORTH} OR north NOT BETWEEN {SOUTH} AND {NORTH}",
            "quarantine",
            "The grid of cells ends with New York.",
        ),
    ),
)

STARTS_IN_AREAS: Final = ALERTS.table(
    "taxi/starts_in_areas",
    columns(
        "ride_id long, area string, event_time timestamp, taxi_id long, start_lon double, "
        "start_lat double, west double, east double, south double, north double"
    ),
    description="Rides that started within an area, with its borders at that time (degrees).",
    keys=("ride_id", "area"),
    personal=("taxi_id",),
)


def starts_in_areas(ride_events: DataFrame, areas: DataFrame) -> DataFrame:
    """Each START with each area that it lies in, as the area was at that time.

    Borders belong to their area. Real-time mode joins by equality alone, hence the cells.
    """
    of_areas = (
        validity(areas, ("area",), since="since")
        .where(F.col("west").isNotNull())
        .withColumn("area_cell", F.explode(cells(*map(F.col, BORDERS))))
    )
    starts = ride_events.where("is_start").select(
        *("ride_id", "event_time", "taxi_id", "start_lon", "start_lat"),
        cell("start_lon", "start_lat").alias("start_cell"),
    )
    within = (
        (F.col("start_cell") == F.col("area_cell"))
        & (F.col("event_time") >= F.col("valid_from"))
        & (F.col("valid_to").isNull() | (F.col("event_time") < F.col("valid_to")))
        & F.col("start_lon").between(F.col("west"), F.col("east"))
        & F.col("start_lat").between(F.col("south"), F.col("north"))
    )
    inside = starts.join(F.broadcast(of_areas), within)
    return inside.select(*STARTS_IN_AREAS.schema.names)


def area_streams(
    rides: Ingest = RIDE_EVENTS,
    *,
    brokers: str = f"${BROKERS}",
    topic: str = os.environ.get(TOPIC) or "taxi.area_alerts",
    every: timedelta = timedelta(minutes=2),
) -> tuple[Ingest, Stream]:
    """The areas, and the alerts of rides; both are deployed where rides come from a topic."""
    areas = ALERTS.ingest(
        "taxi/areas",
        source=FileSource(folder="taxi/areas", pattern="*.json"),
        contract=AREA,
        kind="lookup",
        keys="area",
        description="Areas of New York by their borders in degrees, from their time on.",
        expect=[
            expect.between("west", WEST, EAST, allow_null_share=1.0),
            expect.between("east", WEST, EAST, allow_null_share=1.0),
            expect.between("south", SOUTH, NORTH, allow_null_share=1.0),
            expect.between("north", SOUTH, NORTH, allow_null_share=1.0),
        ],
    )
    alerts = ALERTS.stream(
        reads=rides,
        static=(areas.versions,),
        build=starts_in_areas,
        writes=(
            Output(
                STARTS_IN_AREAS, sinks=(RealTimeSink(topic=topic, brokers=brokers, every=every),)
            ),
        ),
        expect=[
            expect.no_rows_where(
                "NOT (start_lon BETWEEN west AND east AND start_lat BETWEEN south AND north)",
                name="a ride starts within its area",
            ),
        ],
    )
    return areas, alerts
