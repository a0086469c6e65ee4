"""Alerts in real time, topic to topic: through a bounded run, a changed rule, and a kill."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.spark.helpers.delta_rows import delta_rows
from tests.spark.helpers.kafka import Topics, committed_messages
from tests.spark.kafka.real_time_process import running
from tests.spark.kafka.real_time_run import ALERTS, READINGS

Key = tuple[str, int, str]
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
TEMPERATURES = ("50", "95.5", "85", "20")
PARTITIONS = 2


class World:
    """A home, the topics, and which alerts its readings make."""

    def __init__(self, home: Path, topics: Topics) -> None:
        self.home = home
        self.topics = topics
        self.expected: dict[Key, str] = {}
        self.sent = 0

    def land_limits(self, name: str, since: datetime, hot: int) -> None:
        """Land a file of limits: when it is hot from then on; and, always, when it freezes."""
        folder = self.home / "landing" / "limits"
        folder.mkdir(parents=True, exist_ok=True)
        limits = [("hot", since, hot), ("freezing", BEGAN, 32)]
        lines = [
            json.dumps({"rule": rule, "since": at.isoformat(), "degrees": degrees})
            for rule, at, degrees in limits
        ]
        (folder / f".{name}").write_text("".join(f"{line}\n" for line in lines))
        (folder / f".{name}").rename(folder / name)

    def send(self, temperatures: Sequence[str], hot: str, sensor: str = "") -> None:
        """Send a reading each to a partition by its sensor; `hot` is the limit of the moment."""
        for temperature in temperatures:
            own = sensor or f"s{self.sent % 3}"
            reading = {
                "sensor_id": own,
                "event_time": datetime.now(UTC).isoformat(),
                "temperature": temperature,
                "sequence": self.sent,
            }
            self.topics.send(READINGS, [reading], key=own.encode())
            for rule, beyond in (
                ("hot", Decimal(temperature) > Decimal(hot)),
                ("freezing", Decimal(temperature) < 32),
            ):
                if beyond and not sensor:
                    self.expected[own, self.sent, rule] = temperature
            self.sent += 1

    def send_unreadable(self) -> None:
        """Send what admission skips or quarantines, to each partition; none of it is an alert."""
        cold = {"sensor_id": "cold", "event_time": BEGAN.isoformat(), "sequence": 1}
        halved = json.dumps({**cold, "temperature": "-1"}).replace("cold", "\\ud83d")
        unreadable = (
            *(None, b"", b"{", b"\xff\xfe", b"[1]", b"null", halved.encode()),
            *(cold, {**cold, "temperature": "cold"}, {**cold, "temperature": "-500"}),
        )
        for partition in range(PARTITIONS):
            self.topics.send(READINGS, unreadable, key=b"\xff", partition=partition)

    def alerts(self) -> dict[Key, dict[str, Any]]:
        """The alerts in the topic by their keys, each with a message that says the same."""
        alerts: dict[Key, dict[str, Any]] = {}
        for message in committed_messages(self.topics, ALERTS):
            sensor, sequence, rule = json.loads(message.key() or b"")
            key = sensor, int(sequence), rule
            alert = json.loads(message.value() or b"")
            assert (alert["sensor_id"], alert["sequence"], alert["rule"]) == key
            # What is sent again is the same message.
            assert alerts.setdefault(key, alert) == alert
        return alerts

    def all_sent(self) -> bool:
        """Whether every alert is in the topic."""
        return self.expected.keys() <= self.alerts().keys()

    def in_table(self) -> list[Key]:
        """The keys of the table's rows but the probes', each as often as it is there."""
        path = Settings(home=self.home).lake().path("test/alerts")
        rows = delta_rows(path, "sensor_id", "sequence", "rule")
        return sorted((r.sensor_id, r.sequence, r.rule) for r in rows if r.sensor_id != "probe")

    def running(self, mode: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """The streams in a process of their own, which is killed with its JVM at the end."""
        return running("tests.spark.kafka.real_time_run", self.home, self.topics.brokers, mode)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.usefixtures("connector")
def test_no_alert_is_lost_by_a_bounded_run_a_changed_rule_or_a_kill(
    topics: Topics, tmp_path: Path
) -> None:
    topics.make(READINGS, partitions=PARTITIONS)
    topics.make(ALERTS)
    world = World(tmp_path / "home", topics)
    world.land_limits("first.json", BEGAN, hot=90)
    world.send_unreadable()
    world.send(TEMPERATURES * 5, hot="90")
    with world.running("drained") as process:
        wait_until(lambda: process.poll() is not None, reason="the bounded run ends")
        assert process.returncode == 0
    assert world.all_sent()
    with world.running("live") as process:

        def alive() -> bool:
            return process.poll() is None

        world.land_limits("second.json", datetime.now(UTC), hot=80)

        def probed() -> bool:
            world.send(["85"], hot="80", sensor="probe")
            return any(sensor == "probe" for sensor, _, _ in world.alerts())

        wait_until(probed, reason="the changed limit, without a restart", alive=alive)
        world.send_unreadable()
        world.send(TEMPERATURES * 15, hot="80")
        wait_until(world.all_sent, reason="alerts by the changed limit", alive=alive)
        world.send(TEMPERATURES * 5, hot="80")
    world.send(TEMPERATURES * 5, hot="80")
    with world.running("live") as process:
        wait_until(world.all_sent, reason="alerts after the kill", alive=alive)
        wait_until(
            lambda: world.in_table() == sorted(world.expected),
            reason="the table has each alert once",
            alive=alive,
        )
    alerts = {key: alert for key, alert in world.alerts().items() if key[0] != "probe"}
    assert {key: Decimal(a["temperature"]) for key, a in alerts.items()} == {
        key: Decimal(temperature) for key, temperature in world.expected.items()
    }
