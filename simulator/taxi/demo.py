"""The taxi domain's part in the demo: recorded trips, a replayed file, and the training's rides."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from assets.samples import SAMPLES
from assets.taxi.ingest import FARE_EVENTS, LATENESS, RIDE_EVENTS, TRIP_EVENTS
from assets.taxi.tips import HOURLY_WINNERS
from assets.taxi.trips.debs import DEBS_TRIPS
from assets.taxi.trips.ingest import TRIP_RECORDS
from assets.taxi.trips.passenger_counts import PASSENGER_COUNTS
from assets.taxi.trips.seaborn import SEABORN_TRIPS
from assets.taxi.trips.zone_hours import ZONE_HOURS
from rivermark.cli.demo_scene import LandedInput, Preview, Scene, Served
from rivermark.cli.show import newest_rows
from rivermark.model.check import CheckResult
from rivermark.model.stream import table_of
from rivermark.monitor.checks.check import StreamCheck
from rivermark.settings import Settings
from rivermark.sources import KafkaSource
from simulator.demo_day import DemoDay
from simulator.landing.once import copy_once, land_parts_once
from simulator.taxi.clock import TRAINING_CLOCK
from simulator.taxi.manifest import read_manifest
from simulator.taxi.received import make_winners_topic, received
from simulator.taxi.replay import TRIP_EVENTS_FOLDER, replay
from simulator.taxi.topics import send_landed
from simulator.taxi.training import fare_parts, ride_parts
from simulator.taxi.truth import HourlyTips, hourly_winners, hours_closed, truth_of
from simulator.taxi.wire import FARES_FOLDER, RIDES_FOLDER

WINNERS: Final = table_of(HOURLY_WINNERS)
WINNERS_RIGHT: Final = "winners_are_those_of_the_landed_fares"

HOURS: Final = 7
"""Of rides, one every 20 seconds from noon: the watermark closes the first six."""
SEVEN_HOURS: Final = HOURS * 180

BLOCKS_AN_HOUR: Final = 36
RIDES_AN_HOUR: Final = 180

RECORDED: Final = {
    "green_tripdata_2024-01_first2000.parquet": ("TLC green trips, January 2024", 2_000),
    "yellow_tripdata_2025-02_sample5000.parquet": ("TLC yellow trips, February 2025", 5_000),
}
OTHERS: Final = {
    DEBS_TRIPS: ("tlc/debs2015_trips_2013-01-01_first1000.csv", "TLC trips of 2013 (DEBS)", 1_000),
    SEABORN_TRIPS: ("tlc/seaborn_taxis_2019-03_first1000.csv.gz", "seaborn's TLC trips", 1_000),
    PASSENGER_COUNTS: ("nab/nyc_taxi.csv.gz", "NAB, passengers of all yellow taxis", 10_320),
}
"""Samples that other ingests than that of trip records read: file, in words, rows."""
REPLAYED: Final = SAMPLES / "tlc" / "green_tripdata_2024-01_first2000.parquet"
"""The oldest sample, so that a person may replay the newer one after it: a stream goes forwards."""
REPLAYED_UNTIL: Final = datetime(2024, 1, 2, 20, tzinfo=UTC)
"""The sample is the first 2,000 trips of a month: its hours thin out from here on."""


def land(landing: Path) -> list[LandedInput]:
    """Land the samples, the replay of one of them, and seven hours of the training's rides.

    Events whose source is a topic are sent there, too.
    """
    landed = [*_land_records(landing), _replay(landing), *_land_training(landing)]
    make_winners_topic()
    return [*landed, *_send(landing)]


def _send(landing: Path) -> Iterator[LandedInput]:
    for folder, ingest in (
        (RIDES_FOLDER, RIDE_EVENTS),
        (FARES_FOLDER, FARE_EVENTS),
        (TRIP_EVENTS_FOLDER, TRIP_EVENTS),
    ):
        if isinstance(ingest.source, KafkaSource):
            sent = send_landed(landing / folder, ingest.source, ingest.contract)
            what = f"of these sent to the topic {sent.topic}"
            yield LandedInput(what, sent.files, sent.rows, sent.new_files)


def _land_records(landing: Path) -> Iterator[LandedInput]:
    for name, (what, rows) in RECORDED.items():
        new = copy_once(SAMPLES / "tlc" / name, landing / TRIP_RECORDS.source.name)
        yield LandedInput(what, 1, rows, int(new))
    for ingest, (name, what, rows) in OTHERS.items():
        new = copy_once(SAMPLES / name, landing / ingest.source.name)
        yield LandedInput(what, 1, rows, int(new))


def _replay(landing: Path) -> LandedInput:
    """Replay a file as fast as possible; the manifest remembers what landed before."""
    manifest = landing.with_name("manifests") / "demo_replay.jsonl"
    done = replay(REPLAYED, landing, speed=None, until=REPLAYED_UNTIL, manifest=manifest)
    files = read_manifest(manifest, landing).files
    what = f"the green trips replayed as events (folder {TRIP_EVENTS_FOLDER})"
    return LandedInput(what, len(files), sum(file.rows for file in files), done.paced.files)


def _land_training(landing: Path) -> Iterator[LandedInput]:
    folders = [landing / name for name in (RIDES_FOLDER, FARES_FOLDER)]
    of_day = DemoDay.of(folders, "training", datetime.now(UTC))
    clock = replace(TRAINING_CLOCK, beginning=of_day.noon)
    # Without the last part, the ENDs of rides that go on when the fares end: a join waits for both.
    rides = islice(ride_parts(SEVEN_HOURS, BLOCKS_AN_HOUR, clock), HOURS)
    fares = fare_parts(SEVEN_HOURS, RIDES_AN_HOUR, clock)
    feeds = (("generated rides, STARTs and ENDs", rides), ("their fares", fares))
    for folder, (what, parts) in zip(folders, feeds, strict=True):
        done = land_parts_once(folder, of_day.stem, parts)
        yield LandedInput(what, done.files, done.rows, done.new_files)


def winners_are_right(settings: Settings, _now: datetime) -> CheckResult:
    """Whether the published winners are those that plain Python finds in the landed fares."""
    truth = truth_of(Path(settings.landing_root), LATENESS).fares
    right = hours_closed(hourly_winners(truth.admitted), truth.watermark) if truth.watermark else []
    published = [
        HourlyTips(row["window_end"].astimezone(UTC), row["driver_id"], row["tips"])
        for row in published_winners(settings)
    ]
    wrong = set(right) ^ set(published)
    return CheckResult(
        name=WINNERS_RIGHT,
        severity="critical",
        passed=not wrong and len(published) == len(right),
        observed=(
            f"{len(published)} hours published, {len(right)} computed from the landed fares, "
            f"{len(wrong)} rows differ"
        ),
        numbers={"hours": len(published), "rows_wrong": len(wrong)},
        examples=tuple(
            {"hour_end": str(row.hour_end), "driver_id": row.driver_id, "tips": str(row.tips)}
            for row in sorted(wrong)
        ),
    )


def published_winners(settings: Settings) -> list[dict[str, Any]]:
    """The rows of the winners' table, oldest hour first."""
    if not settings.lake().exists(WINNERS):
        return []
    return newest_rows(settings.lake(), WINNERS, 100_000, oldest=True)


@contextmanager
def serve() -> Iterator[Served]:
    """Nothing of its own: tells what arrived in the topic and the database of the environment."""
    yield Served({}, received)


SCENE: Final = Scene(
    land=land,
    serve=serve,
    checks=(
        StreamCheck(
            name=WINNERS_RIGHT,
            table=WINNERS,
            stream=HOURLY_WINNERS.name,
            description="The published winners equal those computed in plain Python.",
            severity="critical",
            evaluate=winners_are_right,
        ),
    ),
    previews=(
        Preview(
            title="Who earned the most tips in each hour (UTC)",
            table=WINNERS,
            columns=("window_start", "window_end", "driver_id", "tips"),
            limit=12,
            oldest=True,
        ),
    ),
    next_commands=(
        (f"rivermark show {table_of(ZONE_HOURS).name}", "trips and revenue by zone and hour"),
        ("make ui", "the same streams as living assets in the browser, on 127.0.0.1:3000"),
        (
            "rivermark run --group taxi_events --continuous",
            "live streams, while `rivermark drip` in another terminal lands new rides",
        ),
        ("make demo-kafka", "rides from a topic, and winners into one"),
        ("make demo-postgres", "the newest activity of each zone in a table of PostgreSQL"),
    ),
)
