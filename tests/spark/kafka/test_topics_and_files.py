"""The same events give the same published tables, landed in files or sent to topics."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from assets.taxi.ingest import FARE_EVENTS, RIDE_EVENTS
from assets.taxi.streams import EVENT_STREAMS
from rivermark.ingest.plan import BatchPlanner
from rivermark.model.stream import Ingest
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from rivermark.sources import KafkaSource
from simulator.taxi.drip import drip
from simulator.taxi.drip_plan import DripPlan
from tests.spark.helpers.delta_rows import published_rows
from tests.spark.helpers.kafka import Topics

NAMES = [s.name for s in EVENT_STREAMS if not s.name.startswith(("taxi/trip", "taxi/zone"))]
PARTITIONS = 4


@pytest.mark.spark
@pytest.mark.long
def test_taxi_events_from_topics_give_the_tables_of_those_from_files(
    spark: SparkSession, tmp_path: Path, topics: Topics
) -> None:
    landing = tmp_path / "landing"
    plan = DripPlan(rate=None, clock="training", rides=600, unpaced_span=timedelta(minutes=30))
    drip(landing, tmp_path / "manifest.json", plan)
    files = Settings(home=tmp_path / "files", landing_root=str(landing))
    sent = Settings(home=tmp_path / "topics")
    by_topic = {i.name: from_topic(i, landing, sent, topics) for i in (RIDE_EVENTS, FARE_EVENTS)}

    published = {}
    for settings, topology in (
        (files, Topology(EVENT_STREAMS)),
        (sent, Topology(by_topic.get(stream.name, stream) for stream in EVENT_STREAMS)),
    ):
        streams = [topology.named(name) for name in NAMES]
        run_bounded(spark, settings, topology, streams, run_id="run")
        tables = [t for s in streams for t in s.tables if not t.name.endswith("_raw")]
        published[settings.home] = published_rows(settings.lake(), tables)

    expected, found = published[files.home], published[sent.home]
    assert found.keys() == expected.keys()
    assert {name: len(rows) for name, rows in found.items()} == {
        name: len(rows) for name, rows in expected.items()
    }
    assert found == expected
    assert expected["taxi/ride_events_late"]
    assert expected["taxi/hourly_winners"]


def from_topic(ingest: Ingest, landing: Path, settings: Settings, topics: Topics) -> Ingest:
    """The ingest of a topic, planned with what each file brought as what came together."""
    topic = topics.make(partitions=PARTITIONS)
    read = replace(ingest, source=KafkaSource(brokers=topics.brokers, topics=topic))
    planner = BatchPlanner(settings.lake(), settings.landing_root, read, "run")
    paths = (landing / ingest.source.name).iterdir()
    for path in sorted(paths, key=lambda path: (path.stat().st_mtime, path)):
        for n, line in enumerate(path.read_bytes().splitlines()):
            topics.producer.produce(topic, line, partition=n % PARTITIONS)
        topics.producer.flush()
        planner.poll()
    planner.source.close()
    return read
