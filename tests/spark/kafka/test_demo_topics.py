"""The demo's events by topics: sent once, with their keys and times. Needs no Spark."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from assets.taxi.ingest import BROKERS, events_of
from assets.taxi.rides import RIDE_EVENT
from assets.taxi.serving import TOPIC
from rivermark.sources import FileSource, KafkaSource
from simulator.taxi.received import make_winners_topic, received
from simulator.taxi.topics import send_landed
from simulator.taxi.training import land_training
from simulator.taxi.wire import RIDES_FOLDER, landed_lines
from tests.spark.helpers.kafka import Topics, committed_messages


def test_landed_events_are_sent_once_where_the_environment_names_brokers(
    tmp_path: Path, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(BROKERS, raising=False)
    assert isinstance(events_of(RIDES_FOLDER), FileSource)
    monkeypatch.setenv(BROKERS, topics.brokers)
    source = events_of(RIDES_FOLDER)
    assert isinstance(source, KafkaSource)

    for new_files in (5, 0):
        if new_files:
            land_training(tmp_path, 100, blocks_a_file=5)
        sent = send_landed(tmp_path / RIDES_FOLDER, source, RIDE_EVENT)
        assert (sent.files, sent.new_files) == (5, new_files)
        messages = committed_messages(topics, source.name)
        lines = [line for part in landed_lines(tmp_path / RIDES_FOLDER) for line in part]
        assert sorted(m.value() or b"" for m in messages) == sorted(lines)
    partitions: dict[int, set[int | None]] = {}
    for message in messages:
        ride = json.loads(message.value() or b"")
        assert message.key() == str(ride["ride_id"]).encode()
        at = datetime.fromisoformat(ride["event_time"])
        assert message.timestamp()[1] == int(at.timestamp() * 1000)
        partitions.setdefault(ride["ride_id"], set()).add(message.partition())
    assert all(len(own) == 1 for own in partitions.values())


def test_the_demo_shows_what_arrived_in_the_topic_of_the_winners(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BROKERS, topics.brokers)
    monkeypatch.delenv(TOPIC, raising=False)
    make_winners_topic()
    assert received() == [], "none is named"
    monkeypatch.setenv(TOPIC, "demo.winners")
    make_winners_topic()
    make_winners_topic()

    assert received() == [f"messages in the topic demo.winners of {topics.brokers}: 0, the last"]
