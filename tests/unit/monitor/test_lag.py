"""Times of messages that are none: neither an age of decades nor of nothing (M010's kind)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from deltalake import CommitProperties, write_deltalake

from rivermark.ingest.source.kafka.reader import moment_of
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.schema import create_table
from rivermark.model.source import Part
from rivermark.model.stream import Ingest
from rivermark.monitor.lag import keeps_up, lag_of
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.settings import Settings

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)
Parts = Callable[..., None]


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> Parts:
    """What the partitions of a topic say of their oldest unread message."""

    def say(*moments: datetime | None) -> None:
        parts = [
            Part(name=f"t/{n}", records=int(at is not None), newest=None, oldest=at)
            for n, at in enumerate(moments)
        ]
        monkeypatch.setattr("rivermark.monitor.lag.parts_of", lambda *_: parts)

    return say


def read(settings: Settings, ingest: Ingest) -> None:
    """A batch that was read just now."""
    lake = settings.lake()
    create_table(lake, ingest.raw)
    write_deltalake(
        lake.path(ingest.raw),
        arrow_schema(ingest.raw.schema).empty_table(),
        mode="append",
        commit_properties=CommitProperties(),
    )


WILD = [-1, 0, 1_000, 2**60, int(datetime(2100, 1, 1, tzinfo=UTC).timestamp() * 1000)]


@pytest.mark.parametrize("millis", WILD)
def test_a_message_of_a_producer_without_a_clock_counts_from_the_last_batch(
    settings: Settings, rides: Ingest, unread: Parts, millis: int
) -> None:
    DesiredStore(settings.state).set(rides.group, "run", by="ada", reason="test")
    read(settings, rides)
    unread(moment_of(millis), None)

    result = keeps_up(settings, rides, NOW)
    later = keeps_up(settings, rides, NOW + 9 * HOUR + HOUR)

    assert result.passed
    assert "the oldest has no time of sending (t/0: " in result.observed
    # A time in the future would let it wait for ever without a word.
    assert not later.passed
    assert later.numbers["oldest_unread_seconds"] < 11 * 3600


def test_beside_a_wild_time_the_others_count(
    settings: Settings, rides: Ingest, unread: Parts
) -> None:
    read(settings, rides)
    unread(moment_of(0), NOW - 2 * HOUR)

    lag = lag_of(settings, rides)

    assert lag.oldest == NOW - 2 * HOUR
    assert [part.name for part in lag.wild] == ["t/0"]
    unread(NOW - HOUR)
    assert lag_of(settings, rides).wild == ()
    assert "no time of sending" not in lag_of(settings, rides).sentence(NOW)
