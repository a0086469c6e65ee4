"""One lake for the domain's tests: one month first, all other files in a second run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from assets.samples import SAMPLES as DEMO_SAMPLES
from assets.taxi.trips.debs import DEBS_TRIPS
from assets.taxi.trips.ingest import TRIP_RECORDS
from assets.taxi.trips.passenger_counts import PASSENGER_COUNTS
from assets.taxi.trips.seaborn import SEABORN_TRIPS
from assets.taxi.trips.streams import STREAMS
from assets.taxi.trips.trips import TRIPS
from rivermark.settings import Settings
from rivermark.testing.landing import land
from tests.oracles.trip_records import Record
from tests.oracles.trips import read_trips
from tests.spark.assets.taxi.trips.made_files import GREEN, SAMPLES, put_cases, put_samples
from tests.spark.assets.taxi.trips.published import Published, copy, land_whole_files

PUBLIC_DATA = os.environ.get("RIVERMARK_PUBLIC_DATA")
"""Folder that holds nyc_taxi/ with the whole public files, too large for this repository."""

collect_ignore = [] if PUBLIC_DATA else ["test_whole_files.py"]

OTHERS = (DEBS_TRIPS, SEABORN_TRIPS, PASSENGER_COUNTS)
OF_RECORDS = tuple(stream for stream in STREAMS if stream not in OTHERS)

DEBS = DEMO_SAMPLES / "tlc" / "debs2015_trips_2013-01-01_first1000.csv"

# As in the Numenta Anomaly Benchmark's file; the buckets of 01:00 and 01:30 hold two hours each.
NIGHT = [
    "timestamp,value",
    "2014-11-02 00:30:00,23109",
    "2014-11-02 01:00:00,39197",
    "2014-11-02 01:30:00,35212",
    "2014-11-02 02:00:00,13259",
    "2014-11-02 02:30:00,many",
]


@pytest.fixture(scope="session")
def published(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Published:
    lake = Published(spark, Settings(home=tmp_path_factory.mktemp("trips")))
    # Days of this month are refreshed by the second run, which brings the same trips once more.
    copy(SAMPLES / GREEN, lake.landing / "green" / GREEN)
    lake.drain("first", (TRIP_RECORDS, TRIPS))
    put_samples(lake.landing)
    put_cases(lake.landing)
    lake.drain("made", OF_RECORDS)
    return lake


@pytest.fixture(scope="session")
def others(published: Published) -> Published:
    """The lake, with the other files of the domain too."""
    copy(DEBS, published.landing.parent / "debs" / DEBS.name)
    land(published.landing.parent / "passengers" / "counts.csv", NIGHT)
    published.drain("others", OTHERS)
    return published


@pytest.fixture(scope="session")
def records(published: Published) -> list[Record]:
    return read_trips(published.landing)


@pytest.fixture(scope="session")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Published:
    """A lake with every public trip file."""
    assert PUBLIC_DATA
    lake = Published(spark, Settings(home=tmp_path_factory.mktemp("whole")))
    land_whole_files(Path(PUBLIC_DATA) / "nyc_taxi", lake.landing)
    lake.drain("whole")
    return lake
