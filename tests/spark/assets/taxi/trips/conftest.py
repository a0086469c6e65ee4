"""One lake for the domain's tests: samples first, the made files in a second run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from assets.taxi.trips.ingest import TRIP_RECORDS
from assets.taxi.trips.local_days import LOCAL_DAYS
from assets.taxi.trips.trips import TRIPS
from rivermark.settings import Settings
from tests.oracles.trip_records import Record
from tests.oracles.trips import read_trips
from tests.spark.assets.taxi.trips.made_files import SAMPLES, put_cases, put_samples
from tests.spark.assets.taxi.trips.published import Published, copy, land_whole_files

PUBLIC_DATA = os.environ.get("RIVERMARK_PUBLIC_DATA")
"""Folder that holds nyc_taxi/ with the whole public files, too large for this repository."""

collect_ignore = [] if PUBLIC_DATA else ["test_whole_files.py"]

DEBS = "debs2015_trips_2013-01-01_first1000.csv"


@pytest.fixture(scope="session")
def published(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Published:
    lake = Published(spark, Settings(home=tmp_path_factory.mktemp("trips")))
    put_samples(lake.landing)
    lake.drain("samples", (TRIP_RECORDS, TRIPS, LOCAL_DAYS))
    put_cases(lake.landing)
    copy(SAMPLES / DEBS, lake.landing.parent / "debs" / DEBS)
    lake.drain("made")
    return lake


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
