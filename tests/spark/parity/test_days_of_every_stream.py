"""Every shipped stream: its days, computed again, are the days that streamed.

A small lake of generated inputs that go on over midnight, some rows late, lost or twice. The
streams are those of the topology: a new one is covered by itself, or named as one without input.
RIVERMARK_FUZZ_SEED chooses other days.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

import pytest
from pyspark.sql import SparkSession

from assets.readings.ingest import LIBRARY, TEMPERATURES
from assets.samples import SAMPLES
from assets.taxi.trips.ingest import TRIP_RECORDS
from assets.topology import TOPOLOGY
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.late.days import live_ingests
from rivermark.backfill.late.run import merge_late
from rivermark.backfill.verify import closed_days, verify
from rivermark.cli.demo import with_input
from rivermark.model.stream import Stream
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from simulator.landing.once import copy_once
from simulator.readings.demo import RECORDED as SERIES
from simulator.taxi.demo import RECORDED, REPLAYED
from simulator.taxi.drip import drip
from simulator.taxi.drip_plan import DripPlan
from simulator.taxi.replay import replay
from tests.spark.helpers.domain_worlds import land_worlds
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.recomputing import recompute_days

pytestmark = [pytest.mark.spark, pytest.mark.long]

SEED: Final = int(os.environ.get("RIVERMARK_FUZZ_SEED", "1"))
MIDNIGHT: Final = datetime(2024, 3, 2, tzinfo=UTC)
RIDES: Final = 2_700
"""Fifteen hours of them, from noon on."""
NODES: Final = 3
FIRST_ROUND: Final = datetime(2006, 11, 13, 22, tzinfo=UTC)
ROUNDS: Final = 5 * 24 * 60
"""A round of the library's nodes each minute, over five midnights."""
SILENCE: Final = range(60, 99 * 60)
"""Rounds in which a node is not heard, through three whole days."""


def land_inputs(settings: Settings) -> None:
    """Input for every derived stream."""
    root, manifests = Path(settings.landing_root), settings.home / "manifests"
    drip(root, manifests / "drip.jsonl", DripPlan(rate=None, clock="training", rides=RIDES))
    replay(REPLAYED, root, speed=None)
    for name in RECORDED:
        copy_once(SAMPLES / "tlc" / name, root / TRIP_RECORDS.source.name)
    for name in SERIES:
        copy_once(SAMPLES / "nab" / name, root / TEMPERATURES.source.name)
    land_worlds(
        root,
        readings=MIDNIGHT - timedelta(minutes=1),
        busy=MIDNIGHT - timedelta(minutes=30),
        later=MIDNIGHT + timedelta(hours=30),
    )
    messages = [*library_messages()]
    landing, half = Landing(root), len(messages) // 2
    landing.put(f"{LIBRARY.source.name}/1.txt", *messages[:half])
    landing.put(f"{LIBRARY.source.name}/2.txt", *messages[half:])


def library_messages() -> Iterator[str]:
    """A message a round of each node that is heard, some lost and some twice."""
    random = Random(SEED)
    for number in range(ROUNDS):
        began = FIRST_ROUND + number * timedelta(minutes=1)
        for node in range(1, NODES + 1):
            silent = node == NODES and number in SILENCE
            for _ in range(0 if silent else random.choice((0, 1, 1, 1, 1, 1, 2))):
                arrived = began + random.uniform(0, 0.5) * timedelta(seconds=1)
                milliseconds = round(1000 * arrived.timestamp())
                degrees = f"{random.randint(1500, 2500) / 100:.2f}".replace(".", ",")
                yield f"{milliseconds} {node} {number} {degrees} 2,73 51,98 {degrees} 1 1"


def derived() -> list[Stream]:
    """The streams that are made of others."""
    return [stream for stream in TOPOLOGY.streams if isinstance(stream, Stream)]


@pytest.mark.timeout(560)
def test_days_of_every_shipped_stream_are_what_streamed(
    spark: SparkSession, tmp_path: Path
) -> None:
    settings, random = Settings(home=tmp_path), Random(SEED)
    lake = settings.lake()
    land_inputs(settings)
    run_bounded(spark, settings, TOPOLOGY, with_input(settings, TOPOLOGY), run_id="run")

    days = {stream.name: closed_days(lake, stream) for stream in derived()}
    assert [name for name, closed in days.items() if not closed] == [], "land input for them"
    wrong = [
        result.sentence
        for stream in derived()
        for result in verify(
            lambda: spark, lake, TOPOLOGY, [stream], days=[random.choice(days[stream.name])]
        )
        if result.skipped or not result.matches
    ]
    assert wrong == []

    context = BackfillContext(
        settings=settings, topology=TOPOLOGY, spark=lambda: spark, run_id="merge"
    )
    merged = merge_late(context, live_ingests(TOPOLOGY))
    assert merged.rows > 0
    assert merged.downstream.blocked == {}
    for stream in derived():
        first = random.choice(days[stream.name])
        last = min(first + timedelta(days=1), days[stream.name][-1])
        wrong += differences(spark, settings, stream, first, last)
    assert wrong == []


def differences(
    spark: SparkSession, settings: Settings, stream: Stream, first: date, last: date
) -> list[str]:
    """What a recompute of these days found to be otherwise."""
    done = recompute_days(spark, settings, stream, first, last)
    return [
        f"{name}, {first} to {last}: {outcome.difference.sentence()}"
        for name, outcome in done.tables.items()
        if not outcome.difference.same
    ]
