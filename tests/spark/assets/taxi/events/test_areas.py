"""Rides that start within areas, beside an oracle of plain Python; which areas are taken at all."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import SparkSession

from assets.taxi.areas import AREA, STARTS_IN_AREAS, area_streams, starts_in_areas
from assets.taxi.grid import CELL_WIDTH, EAST, NORTH, SOUTH, WEST
from assets.taxi.ingest import RIDE_EVENTS
from rivermark.sources import KafkaSource
from setup.local_server import ROOT
from tests.spark.assets.taxi.events.ride_rows import MINUTE, NOON, Row, ride, rides_feed
from tests.spark.helpers.contract_problems import problems
from tests.spark.helpers.micro_batches import Feed, as_table, plain, streamed

NOWHERE: Final = (None, None, None, None)
CITY: Final = (WEST, EAST, SOUTH, NORTH)
SQUARE: Final = (-73.99, -73.98, 40.74, 40.76)
POINT: Final = (-73.9857, -73.9857, 40.7484, 40.7484)
AIRPORT: Final = (-73.83, -73.75, 40.62, 40.665)
CORNER: Final = (-73.75, EAST, SOUTH, 40.51)


class Version(NamedTuple):
    """An area as it is from a moment on."""

    area: str
    since: datetime
    borders: tuple[float | None, ...]


VERSIONS: Final = (
    Version("city", NOON - MINUTE, CITY),
    Version("square", NOON, SQUARE),
    Version("square", NOON + 10 * MINUTE, (-73.985, -73.98, 40.74, 40.75)),
    Version("square", NOON + 20 * MINUTE, NOWHERE),
    Version("square", NOON + 30 * MINUTE, SQUARE),
    Version("point", NOON + 5 * MINUTE, POINT),
    Version("airport", NOON, AIRPORT),
    # Of two versions of one moment the last to come counts.
    Version("corner", NOON, SQUARE),
    Version("corner", NOON, CORNER),
)


def area_rows(versions: tuple[Version, ...]) -> list[Row]:
    names = ("west", "east", "south", "north")
    return [
        {"area": v.area, "since": v.since, **dict(zip(names, v.borders, strict=True))}
        for v in versions
    ]


def starts(count: int) -> list[Row]:
    """Rides of all kinds: on borders of areas and cells, in the city, outside of it, and ENDs."""
    chance = random.Random(17)
    lons = [-74.06, WEST, -73.99, -73.9857, -73.985, -73.98, -73.83, -73.75, EAST, -73.69, 0.0]
    lats = [40.49, SOUTH, 40.51, 40.62, 40.665, 40.74, 40.7484, 40.75, 40.76, NORTH, 41.01]
    lons += [WEST + CELL_WIDTH * n for n in range(40, 52)]
    rides = []
    for number in range(count):
        borders = chance.choice((SQUARE, SQUARE, AIRPORT, CORNER, CITY))
        place = (chance.uniform(*borders[:2]), chance.uniform(*borders[2:]))
        if chance.random() < 0.5:
            place = (chance.choice(lons), chance.choice(lats))
        at = NOON + timedelta(seconds=chance.choice((-60, -61, 0, 300, 599, 600, 1199, 1200, 1800)))
        rides.append(ride(number, at, is_start=chance.random() < 0.9, start=place))
    return rides


def oracle(rides: list[Row], versions: tuple[Version, ...]) -> list[tuple[object, ...]]:
    """Each START with the areas that it lies in, by their newest versions at its time."""
    found: list[tuple[object, ...]] = []
    for row in rides:
        newest: dict[str, Version] = {}
        for version in sorted(versions, key=lambda v: v.since):
            if version.since <= row["event_time"]:  # type: ignore[operator]
                newest[version.area] = version
        for version in newest.values():
            if None in version.borders or not row["is_start"]:
                continue
            west, east, south, north = (float(str(border)) for border in version.borders)
            lon, lat = float(str(row["start_lon"])), float(str(row["start_lat"]))
            if west <= lon <= east and south <= lat <= north:
                found.append((row["ride_id"], version.area, west, east, south, north))
    return sorted(found, key=repr)


RESULT: Final = ("ride_id", "area", "west", "east", "south", "north")


def test_starts_are_found_in_the_areas_of_their_time_as_an_oracle_finds_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    rides = starts(3_000)
    areas, _ = area_streams(replace(RIDE_EVENTS, source=KafkaSource(topics="taxi.rides")))
    versions = areas.versions
    known = Feed(versions.schema, "since", timedelta(0), [area_rows(VERSIONS)])
    expected = oracle(rides, VERSIONS)
    assert {area for _, area, *_ in expected} == {v.area for v in VERSIONS}
    table = as_table(spark, known)

    found = starts_in_areas(as_table(spark, rides_feed(rides)), table)

    assert found.columns == STARTS_IN_AREAS.schema.names
    assert plain(found.collect(), *RESULT) == expected
    live = streamed(
        spark,
        tmp_path,
        lambda events: starts_in_areas(events, table),
        rides_feed(rides[:1_000], rides[1_000:]),
    )
    assert plain(live.rows, *RESULT) == expected


def test_areas_without_some_borders_inside_out_or_outside_the_city_are_quarantined(
    spark: SparkSession,
) -> None:
    west, east, south, north = SQUARE
    odd = (
        SQUARE,
        NOWHERE,
        CITY,
        POINT,
        (west, None, south, north),
        (None, None, None, north),
        (east, west, south, north),
        (west, east, north, south),
        (-74.06, east, south, north),
        (west, east, south, 41.1),
    )
    rows = area_rows(tuple(Version(str(n), NOON, borders) for n, borders in enumerate(odd)))

    assert problems(spark, AREA, rows) == [
        *([[]] * 4),
        *([["some_borders_missing"]] * 2),
        *([["borders_exchanged"]] * 2),
        *([["area_outside_city"]] * 2),
    ]


def test_the_areas_are_deployed_where_brokers_and_a_topic_are_named() -> None:
    code = "from assets.topology import TOPOLOGY; print(*(s.name for s in TOPOLOGY.streams))"
    names = []
    for variables in ({}, {"TAXI_KAFKA": "127.0.0.1:9"}, {"TAXI_AREA_ALERTS": "areas"}):
        names.append({"TAXI_KAFKA": "", "TAXI_AREA_ALERTS": "", **variables})
    names.append({"TAXI_KAFKA": "127.0.0.1:9", "TAXI_AREA_ALERTS": "areas"})
    deployed = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **variables, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for variables in names
    ]

    assert ["taxi/starts_in_areas" in streams for streams in deployed] == [False] * 3 + [True]
    assert {*deployed[-1]} - {*deployed[0]} == {"taxi/areas", "taxi/starts_in_areas"}
