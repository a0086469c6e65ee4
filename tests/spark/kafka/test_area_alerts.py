"""Rides that start within areas, in real time: beside an oracle, and an area that is changed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rivermark.settings import Settings
from rivermark.testing import wait_until
from rivermark.testing.landing import land
from simulator.landing.json_lines import json_line
from tests.spark.assets.taxi.events.ride_rows import MINUTE, NOON, Row, ride
from tests.spark.assets.taxi.events.test_areas import (
    RESULT,
    SQUARE,
    VERSIONS,
    Version,
    area_rows,
    oracle,
    starts,
)
from tests.spark.helpers.delta_rows import delta_rows
from tests.spark.helpers.kafka import Topics, committed_messages
from tests.spark.kafka.area_alerts_run import ALERTS, RIDES
from tests.spark.kafka.real_time_process import running

PROBES = 1_000_000
"""The first ride of those that ask whether an area counts yet."""
MOVED = (-73.975, -73.965, 40.74, 40.76)
Found = list[tuple[object, ...]]


class World:
    """A home and the topics of rides and of their alerts."""

    def __init__(self, home: Path, topics: Topics) -> None:
        self.home = home
        self.topics = topics
        self._probes = PROBES
        for topic in (RIDES, ALERTS):
            topics.make(topic)

    def land(self, name: str, *versions: Version) -> None:
        """Land versions of areas as a file."""
        folder = Path(Settings(home=self.home).landing_root) / "taxi" / "areas"
        land(folder / name, [json_line(row) for row in area_rows(versions)])

    def send(self, rides: list[Row]) -> None:
        """Send rides to the topic."""
        self.topics.send(RIDES, [json_line(row).encode() for row in rides])

    def alerts(self) -> list[dict[str, Any]]:
        """The messages of the alerts, each once: what is sent again is the same."""
        alerts: dict[bytes, dict[str, Any]] = {}
        for message in committed_messages(self.topics, ALERTS):
            alert = json.loads(message.value() or b"")
            assert alerts.setdefault(message.key() or b"", alert) == alert
        return [*alerts.values()]

    def in_topic(self) -> Found:
        """What the topic holds of rides that are no probes."""
        found = [tuple(a[name] for name in RESULT) for a in self.alerts() if a["ride_id"] < PROBES]
        return sorted(found, key=repr)

    def in_table(self) -> Found:
        """What the table holds of rides that are no probes."""
        rows = delta_rows(Settings(home=self.home).lake().path("taxi/starts_in_areas"), *RESULT)
        return sorted((tuple(row) for row in rows if row.ride_id < PROBES), key=repr)

    def known(self, version: Version, at: datetime | None = None) -> bool:
        """Whether a ride that starts in the midst of an area now makes an alert by this version."""
        west, east, south, north = (float(str(border)) for border in version.borders)
        place = ((west + east) / 2, (south + north) / 2)
        self.send([ride(self._probes, at or datetime.now(UTC), start=place)])
        self._probes += 1
        return any(
            alert["area"] == version.area and alert["west"] == west and alert["ride_id"] >= PROBES
            for alert in self.alerts()
        )


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.usefixtures("connector")
def test_area_alerts_in_real_time_are_those_of_an_oracle_and_follow_a_moved_area(
    topics: Topics, tmp_path: Path
) -> None:
    world = World(tmp_path / "home", topics)
    world.land("areas.json", *VERSIONS)
    with running("tests.spark.kafka.area_alerts_run", world.home, topics.brokers, "live") as live:

        def alive() -> bool:
            return live.poll() is None

        wait_until(
            lambda: world.known(VERSIONS[0], NOON - MINUTE),
            reason="an alert by the first areas",
            alive=alive,
            interval=1,
        )
        first = sorted(starts(3_000), key=lambda row: str(row["event_time"]))
        world.send(first)
        expected = oracle(first, VERSIONS)
        assert {area for _, area, *_ in expected} == {version.area for version in VERSIONS}
        wait_until(lambda: world.in_topic() == expected, reason="the oracle's alerts", alive=alive)
        moved = Version("square", datetime.now(UTC), MOVED)
        world.land("moved.json", moved)
        wait_until(
            lambda: world.known(moved),
            reason="an alert by the moved area, without a restart",
            alive=alive,
            interval=1,
        )
        places = (*SQUARE[:2], *MOVED[:2], (MOVED[0] + MOVED[1]) / 2)
        now = datetime.now(UTC)
        second = [ride(5_000 + n, now, start=(lon, 40.75)) for n, lon in enumerate(places)]
        world.send(second)
        expected = sorted(expected + oracle(second, (*VERSIONS, moved)), key=repr)
        wait_until(
            lambda: world.in_topic() == expected, reason="alerts by the moved area", alive=alive
        )
        wait_until(
            lambda: world.in_table() == expected, reason="the table has them once", alive=alive
        )
