"""Generated feeds as they land: nothing but what was sent, the same files each time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from simulator.ads.commands import ad_feeds
from simulator.ads.world import AdWorld
from simulator.feeds import Feed, drip_feeds
from simulator.fraud.commands import fraud_feeds
from simulator.fraud.world import FraudWorld
from simulator.readings.feeds import sensor_feeds
from simulator.readings.world import SensorWorld
from simulator.web.commands import web_feeds
from simulator.web.world import WebWorld
from tests.oracles.landed import accept, once

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
A_MINUTE, AN_HOUR = timedelta(minutes=1), timedelta(hours=1)


def web() -> list[Feed]:
    return web_feeds(WebWorld(), NOON, AN_HOUR)


def fraud() -> list[Feed]:
    return fraud_feeds(FraudWorld(), NOON, AN_HOUR)


def ads() -> list[Feed]:
    return ad_feeds(AdWorld(), NOON, AN_HOUR)


@pytest.mark.parametrize("feeds", [web, fraud, ads])
def test_what_lands_is_what_was_sent_with_some_of_it_late_and_twice(
    tmp_path: Path, feeds: Callable[[], list[Feed]]
) -> None:
    done = drip_feeds(tmp_path, feeds(), every=timedelta(seconds=30))

    rows = 0
    for feed in feeds():
        assert feed.ingest.lateness is not None
        landed = accept(tmp_path / feed.ingest.source.name, feed.ingest.lateness)
        keys = feed.ingest.contract.keys
        found = once(landed.admitted + landed.late, *keys)
        sent = len(list(feed.events))
        assert 0.97 * sent < len(found) <= sent
        assert len(landed.admitted) + len(landed.late) > len(found)
        assert landed.late
        rows += len(landed.admitted) + len(landed.late)
    assert rows == done.rows


def sensors() -> list[Feed]:
    return sensor_feeds(SensorWorld(), NOON, timedelta(minutes=2))


@pytest.mark.parametrize(
    ("feeds", "every"),
    [*((feeds, A_MINUTE) for feeds in (web, fraud, ads)), (sensors, A_MINUTE / 30)],
)
def test_the_same_feeds_land_the_same_files(
    tmp_path: Path, feeds: Callable[[], list[Feed]], every: timedelta
) -> None:
    contents = []
    for name in ("one", "other"):
        drip_feeds(tmp_path / name, feeds(), every=every)
        files = sorted((tmp_path / name).rglob("part-*"))
        contents.append([(file.parent.name, file.read_bytes()) for file in files])

    assert contents[0] == contents[1]
    assert len(contents[0]) > 50
