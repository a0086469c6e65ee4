"""What follows downstream from a reprocessing, and what stays pending."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Literal

import pytest

from rivermark import Daily, Stream, Topology
from rivermark.backfill.difference import Difference
from rivermark.backfill.follow_ups import follow_up, pending_downstream
from rivermark.backfill.result import Reprocessing
from rivermark.model.errors import PartitionStillOpen
from rivermark.settings import Settings
from tests.oracles.reprocessings import reprocessing
from tests.unit.backfill.conftest import DAY, NEXT_DAY, STREAM, TIPS
from tests.unit.backfill.lineage import KilledError, Lineage


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


@pytest.fixture
def lineage(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Lineage:
    return Lineage(settings, TOPOLOGY, monkeypatch)


def changed_on(*days: date) -> Reprocessing:
    """A replacement of the source's days of which one row each differs, at noon."""
    hours = (datetime(d.year, d.month, d.day, 12, tzinfo=UTC) for d in days)
    of_day = {"added": 0, "removed": 0, "changed": 1, "unchanged": 9}
    found = Difference(
        changed=len(days), unchanged=9, days=dict.fromkeys(days, of_day), hours=frozenset(hours)
    )
    return reprocessing(SOURCE.name, DAY, NEXT_DAY, found, id="cause", after=2)


def test_only_the_days_that_changed_rows_reach_are_computed(lineage: Lineage) -> None:
    followed = follow_up(lineage.context, changed_on(NEXT_DAY))

    # Of a whole UTC day in New York the first hours belong to the day before.
    expected = [("test/hourly", {NEXT_DAY}), ("test/local", {DAY, NEXT_DAY})]
    assert lineage.computed == expected
    assert followed.left == {}
    assert lineage.pending == {}


def test_nothing_follows_where_nothing_differs(lineage: Lineage) -> None:
    follow_up(lineage.context, changed_on())
    assert lineage.computed == []

    lineage.same = {"test/hourly"}
    follow_up(lineage.context, changed_on(DAY))
    assert lineage.computed == [("test/hourly", {DAY})]


def test_open_days_are_pending_and_the_merge_after_they_are_closed_computes_them(
    lineage: Lineage,
) -> None:
    lineage.open = {"test/hourly"}
    followed = follow_up(lineage.context, changed_on(DAY))

    assert "still open; the merge of late rows after it is closed" in followed.left["test/hourly"]
    assert lineage.computed == []
    assert lineage.pending == {"test/hourly": {DAY}}
    assert lineage.merge().downstream.pending == {"test/hourly": {DAY}}

    lineage.open = set()
    lineage.merge()

    assert lineage.streams_computed == ["test/hourly", "test/local"]
    assert lineage.pending == {}


def test_a_kill_between_two_streams_is_finished_by_the_next_merge(lineage: Lineage) -> None:
    lineage.killed_at = "test/local"
    with pytest.raises(KilledError):
        follow_up(lineage.context, changed_on(DAY))
    assert set(lineage.pending) == {"test/hourly", "test/local"}

    lineage.killed_at = ""
    lineage.merge()

    assert lineage.streams_computed == ["test/hourly", "test/local"]
    assert lineage.pending == {}


def test_a_replacement_that_is_killed_before_its_follow_ups_is_finished_by_the_next_merge(
    lineage: Lineage,
) -> None:
    with pytest.raises(KilledError), pending_downstream(lineage.context, SOURCE, [DAY]):
        raise KilledError
    assert set(lineage.pending) == {"test/hourly", "test/local"}

    lineage.merge()

    assert lineage.streams_computed == ["test/hourly", "test/local"]
    assert lineage.pending == {}


def test_a_replacement_that_was_refused_leaves_nothing_pending(lineage: Lineage) -> None:
    with pytest.raises(PartitionStillOpen), pending_downstream(lineage.context, SOURCE, [DAY]):
        raise PartitionStillOpen("at noon")
    assert lineage.pending == {}

    with pending_downstream(lineage.context, SOURCE, [DAY]):
        follow_up(lineage.context, changed_on(DAY))
    assert lineage.pending == {}


def test_rows_that_break_a_critical_rule_hold_back_their_stream_alone_and_stay_pending(
    lineage: Lineage,
) -> None:
    lineage.blocked = "test/local"

    followed = follow_up(lineage.context, changed_on(NEXT_DAY))

    assert followed.left == {"test/local": "its tips are below zero"}
    assert lineage.streams_computed == ["test/hourly"]
    assert lineage.pending == {"test/local": {DAY, NEXT_DAY}}


def test_a_table_without_days_cannot_follow_and_says_so(lineage: Lineage) -> None:
    bare = replace(HOURLY, writes=replace(TIPS, name="test/hourly", days=None))

    followed = follow_up(
        replace(lineage.context, topology=Topology([SOURCE, bare])), changed_on(DAY)
    )

    assert "rivermark reset test/hourly" in followed.left["test/hourly"]
