"""Which days downstream follow from changed ones; and waiting until days are closed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Literal

import pytest

from rivermark import Daily, Stream, Topology
from rivermark.errors import PartitionStillOpen, RivermarkError
from rivermark.reprocessing import follow_ups, waiting
from rivermark.reprocessing.follow_ups import changed_moments, clipped, downstream, reached_days
from rivermark.reprocessing.waiting import wait_until_closed
from rivermark.settings import Settings
from tests.unit.reprocessing.conftest import DAY, NEXT_DAY, STREAM, TIPS


def reading(
    name: str, *reads: Stream, zone: str = "UTC", kind: Literal["append", "refresh"] = "append"
) -> Stream:
    table = replace(TIPS, name=name, days=Daily(column="at", start=DAY, zone=zone))
    return replace(STREAM, name=name, reads=reads, writes=table, kind=kind)


SOURCE = replace(STREAM, name="test/source", writes=replace(TIPS, name="test/source"))
SOURCE = replace(SOURCE, kind="append", lateness=timedelta(0))
HOURLY = reading("test/hourly", SOURCE)
LOCAL = reading("test/local", HOURLY, zone="America/New_York")
ASIDE = replace(STREAM, name="test/aside", writes=replace(TIPS, name="test/aside"))
TOPOLOGY = Topology([LOCAL, ASIDE, HOURLY, SOURCE])


def test_what_lies_downstream_comes_in_the_order_of_lineage() -> None:
    assert [s.name for s in downstream(TOPOLOGY, SOURCE)] == ["test/hourly", "test/local"]
    assert downstream(TOPOLOGY, ASIDE) == []


def test_changed_days_reach_the_local_days_that_they_touch() -> None:
    moments = changed_moments(TOPOLOGY, LOCAL, {"test/hourly": [NEXT_DAY]})

    assert moments == (
        datetime(2024, 3, 2, tzinfo=UTC),
        datetime(2024, 3, 3, tzinfo=UTC),
    )
    # In New York the UTC day begins at seven in the evening of the day before.
    assert reached_days(LOCAL, *moments) == (DAY, NEXT_DAY)


def test_a_margin_reaches_further_but_not_before_the_first_day() -> None:
    patient = replace(HOURLY, margin=timedelta(days=3))
    start = datetime(2024, 3, 2, tzinfo=UTC)

    assert reached_days(patient, start, start + timedelta(days=1)) == (DAY, date(2024, 3, 6))


def test_nothing_follows_where_no_input_changed() -> None:
    assert changed_moments(TOPOLOGY, LOCAL, {"test/source": [DAY], "test/hourly": []}) is None


def test_a_table_without_days_cannot_follow_and_says_so() -> None:
    bare = replace(HOURLY, writes=replace(TIPS, name="test/bare", days=None))
    with pytest.raises(RivermarkError, match="rivermark reset test/hourly"):
        reached_days(bare, datetime(2024, 3, 1, tzinfo=UTC), datetime(2024, 3, 2, tzinfo=UTC))


def test_only_days_that_are_closed_follow(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(follow_ups, "last_reached", lambda *_: datetime(2024, 3, 2, 18, tzinfo=UTC))

    assert clipped(settings.lake(), HOURLY, DAY, NEXT_DAY) == (DAY, DAY)
    with pytest.raises(PartitionStillOpen, match="has not finished 2024-03-02"):
        clipped(settings.lake(), HOURLY, NEXT_DAY, NEXT_DAY)
    refreshed = reading("test/refreshed", SOURCE, kind="refresh")
    assert clipped(settings.lake(), refreshed, DAY, NEXT_DAY) == (DAY, NEXT_DAY)


def test_it_waits_until_the_day_is_closed_and_tells_why(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    looks = iter([PartitionStillOpen("at noon"), PartitionStillOpen("at noon"), None])
    told: list[str] = []
    slept: list[float] = []

    def look(*_: object) -> None:
        if (found := next(looks)) is not None:
            raise found

    monkeypatch.setattr(waiting, "check_closed", look)

    wait_until_closed(
        settings.lake(),
        HOURLY,
        DAY,
        at_most=timedelta(hours=1),
        on_step=told.append,
        sleep=slept.append,
    )

    assert told == ["waiting: at noon"]
    assert slept == [5, 5]


def test_it_waits_no_longer_than_it_was_told(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    def look(*_: object) -> None:
        raise PartitionStillOpen("2024-03-01 is still open")

    monkeypatch.setattr(waiting, "check_closed", look)
    slept: list[float] = []

    with pytest.raises(PartitionStillOpen):
        wait_until_closed(
            settings.lake(), HOURLY, DAY, at_most=timedelta(seconds=12), sleep=slept.append
        )
    assert len(slept) == 3
