"""A query in real time beside its ingest, in a topic with a gap or made again (R07, M028)."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rivermark.runtime.supervision.reset import accept_loss, lost_input
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.spark.helpers.kafka import Topics, committed_messages
from tests.spark.kafka.real_time_process import running
from tests.spark.kafka.real_time_run import ALERTS, READINGS, topology

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.usefixtures("connector")]


class Readings:
    """Hot readings of a topic, and the alerts that are sent of them."""

    def __init__(self, folder: Path, topics: Topics) -> None:
        self.home, self.topics = folder / "home", topics
        self.settings = Settings(home=self.home)
        self.readings, _, self.alerts = topology(topics.brokers).streams
        limits = self.home / "landing" / "limits"
        limits.mkdir(parents=True)
        limit = {"rule": "hot", "since": "2026-01-01T00:00:00Z", "degrees": 90}
        (limits / "limits.json").write_text(json.dumps(limit) + "\n")
        for topic in (READINGS, ALERTS):
            topics.make(topic)

    def send(self, first: int, count: int) -> None:
        """Send readings that are numbered from `first` on."""
        now = datetime.now(UTC).isoformat()
        self.topics.send(
            READINGS,
            [
                {"sensor_id": "s", "event_time": now, "temperature": "99", "sequence": number}
                for number in range(first, first + count)
            ],
        )

    def run(self) -> str:
        """Drain the streams in a process; returns what it printed."""
        log = self.home.parent / "drained.log"
        before = len(log.read_text()) if log.exists() else 0
        with running(
            "tests.spark.kafka.real_time_run", self.home, self.topics.brokers, "drained"
        ) as process:
            self._ended(process)
        return log.read_text()[before:]

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        wait_until(lambda: process.poll() is not None, reason="the bounded run ends")

    def sent(self) -> set[int]:
        """The numbers of the readings of which an alert was sent."""
        messages = committed_messages(self.topics, ALERTS)
        return {json.loads(message.value() or b"")["sequence"] for message in messages}


def test_m028_alerts_go_on_behind_the_gap_that_their_ingest_has_passed(
    topics: Topics, tmp_path: Path
) -> None:
    world = Readings(tmp_path, topics)
    world.send(0, 5)
    world.run()
    assert world.sent() == set(range(5))

    world.send(5, 10)
    topics.cut(READINGS, 0, 10)
    said = world.run()
    gone = "partition 0 of topic 'readings.sensors': offsets 5 to 9 (5 of them) are gone"
    assert gone in said
    assert "rivermark accept-loss test/alerts" in said
    assert world.sent() == set(range(5))

    accept_loss(world.settings, world.readings, run_id="test")
    assert lost_input(world.settings, world.alerts) == []
    world.run()
    assert world.sent() == {*range(5), *range(10, 15)}


def test_r07_alerts_stop_and_go_on_with_their_ingest_in_a_topic_made_again(
    topics: Topics, tmp_path: Path
) -> None:
    world = Readings(tmp_path, topics)
    world.send(0, 20)
    world.run()
    assert world.sent() == set(range(20))

    topics.delete(READINGS)
    topics.make(READINGS)
    world.send(20, 60)
    said = world.run()
    assert "the topic was deleted and made again" in said
    assert "rivermark accept-loss test/readings" in said
    assert world.sent() == set(range(20))

    accept_loss(world.settings, world.readings, run_id="test")
    said = world.run()
    assert world.sent() == set(range(80)), said
    assert lost_input(world.settings, world.alerts) == []
