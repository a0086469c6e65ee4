"""What the taxi scene lands and claims; the streams themselves run in tests/spark/cli."""

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from assets.taxi.ingest import LATENESS
from assets.topology import TOPOLOGY
from rivermark.lake.schema import create_table
from rivermark.monitor.charts import draw_results
from rivermark.monitor.completeness.checks import STANDS_STILL
from rivermark.settings import Settings
from simulator.taxi import demo
from simulator.taxi.demo import WINNERS, land, winners_are_right
from simulator.taxi.replay import TRIP_EVENTS_FOLDER
from simulator.taxi.truth import hourly_winners, hours_closed, truth_of

NOW = datetime.now(UTC)
TRAINING_WINNERS = [76, 71, 83, 81, 73, 123]
"""Published by apache/flink-training for the first hours of its generated rides."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A home in which the scene has landed its inputs, and no stream has run."""
    settings = Settings(home=tmp_path_factory.mktemp("home"))
    land(Path(settings.landing_root))
    return settings


def right_winners(settings: Settings) -> list[dict[str, Any]]:
    fares = truth_of(Path(settings.landing_root), LATENESS).fares
    assert fares.watermark is not None
    rows = hours_closed(hourly_winners(fares.admitted), fares.watermark)
    return [
        {"window_end": r.hour_end, "driver_id": r.driver_id, "tips": r.tips, "window_start": None}
        for r in rows
    ]


def publish(settings: Settings, rows: list[dict[str, Any]]) -> None:
    create_table(settings.lake(), WINNERS)
    path = settings.lake().path(WINNERS)
    schema = DeltaTable(path).to_pyarrow_dataset().schema
    write_deltalake(path, pa.Table.from_pylist(rows, schema), mode="overwrite")


def test_a_second_landing_adds_no_file(home: Settings) -> None:
    landing = Path(home.landing_root)
    before = {f: f.stat().st_mtime_ns for f in landing.rglob("*") if f.is_file()}

    again = land(landing)

    assert {f: f.stat().st_mtime_ns for f in landing.rglob("*") if f.is_file()} == before
    assert sum(found.new_files for found in again) == 0
    assert sum(found.files for found in again) == len(before)
    assert not list(landing.rglob(".*"))


def test_the_landed_rides_close_the_six_hours_whose_winners_are_published(home: Settings) -> None:
    assert [int(row["tips"]) for row in right_winners(home)] == TRAINING_WINNERS


def test_nothing_that_the_scene_lands_is_late(home: Settings) -> None:
    truth = truth_of(Path(home.landing_root), LATENESS)

    assert truth.rides.late == []
    assert truth.fares.late == []
    assert len(truth.fares.admitted) == demo.SEVEN_HOURS


def test_no_input_of_the_scene_stands_still_and_no_hour_of_it_thins_out(home: Settings) -> None:
    """Else the page that the demo leaves begins with a red error (issue 25, clause 9)."""
    truth = truth_of(Path(home.landing_root), LATENESS)
    replayed = [
        json.loads(line)
        for file in (Path(home.landing_root) / TRIP_EVENTS_FOLDER).iterdir()
        for line in file.read_text().splitlines()
    ]

    assert truth.rides.watermark is not None
    assert truth.fares.watermark is not None
    assert abs(truth.rides.watermark - truth.fares.watermark) < STANDS_STILL
    by_hour = Counter(event["event_time"][:13] for event in replayed)
    assert max(by_hour) == "2024-01-02T19"
    assert by_hour[max(by_hour)] > 100


def test_the_right_winners_hold_and_any_other_do_not(home: Settings) -> None:
    rows = right_winners(home)

    publish(home, rows)
    assert winners_are_right(home, NOW).passed
    publish(home, rows[:-1])
    assert not winners_are_right(home, NOW).passed
    publish(home, [*rows, rows[0]])
    assert not winners_are_right(home, NOW).passed
    publish(home, [{**rows[0], "driver_id": 7}, *rows[1:]])
    wrong = winners_are_right(home, NOW)
    assert not wrong.passed
    assert {offender["driver_id"] for offender in wrong.examples} >= {7}


def test_before_anything_ran_the_winners_are_not_right(home: Settings, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, landing_root=home.landing_root)

    assert not winners_are_right(settings, NOW).passed


def test_the_winners_are_drawn(home: Settings, tmp_path: Path) -> None:
    hour = timedelta(hours=1)
    publish(home, [w | {"window_start": w["window_end"] - hour} for w in right_winners(home)])

    chart = draw_results(home, TOPOLOGY, tmp_path / "results.svg").read_text()

    assert "Tips of the best driver in each hour" in chart
    assert [round(float(tips)) for tips in re.findall(r"<title>[^<]* UTC: ([\d.]+)<", chart)] == (
        TRAINING_WINNERS
    )
