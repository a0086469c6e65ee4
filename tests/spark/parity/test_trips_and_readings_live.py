"""Real trips and readings give the same tables drained once and read by living streams."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from assets.readings.ingest import TEMPERATURES
from assets.samples import SAMPLES
from assets.topology import TOPOLOGY
from rivermark.lake.snapshot import row_count
from rivermark.model.stream import AnyStream
from rivermark.runtime.supervision.run import run_bounded, run_continuous
from rivermark.settings import Settings
from rivermark.testing import wait_until
from simulator.readings import demo as readings_demo
from tests.spark.helpers.background import running
from tests.spark.helpers.delta_rows import delta_rows

TLC = Path(__file__).parents[2] / "data" / "tlc"
OF_THE_RUN = ("_ingested_at", "_landed_at", "_ingest_batch", "_arrival")


def land_readings(landing: Path) -> None:
    """Five minutes of twenty sensors, and a year of one office."""
    readings_demo.land(landing)
    for file in (landing / TEMPERATURES.source.name).iterdir():
        if file.name.startswith("machine"):
            file.unlink()


def land_trips(landing: Path) -> None:
    """Ten trips a month over three years, as the domain's own files have them."""
    folder = landing / "taxi/trips"
    folder.mkdir(parents=True)
    shutil.copy(TLC / "gx_yellow_10_per_month.csv", folder / "yellow_tripdata.csv")


@pytest.mark.long
@pytest.mark.parametrize(
    ("land", "names"),
    [
        (land_trips, [s.name for s in TOPOLOGY.groups()["taxi_trips"][:7]]),
        (
            land_readings,
            [s.name for s in TOPOLOGY.groups()["readings"]]
            + ["readings/temperatures", "readings/hourly", "readings/gaps"],
        ),
    ],
    ids=["trips", "readings"],
)
def test_living_streams_give_the_tables_of_a_bounded_run(
    spark: SparkSession, tmp_path: Path, land: Callable[[Path], None], names: list[str]
) -> None:
    assert SAMPLES.is_dir()
    streams = [TOPOLOGY.named(name) for name in names]
    drained = Settings(home=tmp_path / "drained")
    live = Settings(home=tmp_path / "live", trigger_seconds=0.5)
    for settings in (drained, live):
        land(Path(settings.landing_root))

    run_bounded(spark, drained, TOPOLOGY, streams, run_id="drained")
    expected = contents(spark, drained, streams)

    def body(stop: threading.Event) -> object:
        return run_continuous(spark, live, TOPOLOGY, streams, run_id="live", stop=stop)

    with running(body) as thread:
        wait_until(
            lambda: all(
                row_count(live.lake(), t) == row_count(drained.lake(), t)
                for s in streams
                for t in s.tables
            ),
            reason="as many rows as the bounded run gave",
            alive=thread.alive,
        )
    assert contents(spark, live, streams) == expected
    assert sum(len(rows) for rows in expected.values()) > 1000


def contents(
    spark: SparkSession, settings: Settings, streams: list[AnyStream]
) -> dict[str, list[str]]:
    """The rows of every table, without what tells of the run."""
    found = {}
    for stream in streams:
        for table in stream.tables:
            kept = [c for c in table.schema.fieldNames() if c not in OF_THE_RUN]
            found[table.name] = sorted(
                repr(tuple(r)) for r in delta_rows(settings.lake().path(table), *kept)
            )
    return found
