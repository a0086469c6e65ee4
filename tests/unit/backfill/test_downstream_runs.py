"""Which days downstream follow from changed ones; and waiting until days are closed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Literal

import pytest

from rivermark import Daily, Stream, Topology
from rivermark.backfill import downstream as below
from rivermark.backfill import wait_until_closed as waiting
from rivermark.backfill.affected_days import Changed, whole_days
from rivermark.backfill.difference import Difference
from rivermark.backfill.downstream_runs import Followed, follow_up, promised
from rivermark.backfill.late.run import MergeReport, merge_late
from rivermark.backfill.pending import pending_days
from rivermark.backfill.replace_changed import RecomputedTable
from rivermark.backfill.result import Reprocessing, TableOutcome
from rivermark.backfill.wait_until_closed import wait_until_closed
from rivermark.lake.schema import create_table
from rivermark.model.errors import PartitionStillOpen
from rivermark.quality.errors import PublicationBlocked
from rivermark.settings import Settings
from tests.unit.backfill.conftest import DAY, NEXT_DAY, STREAM, TIPS


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


class KilledError(Exception):
    """The end of a process, made by a test."""


class Below:
    """Streams that have begun; every day of theirs differs when it is computed first."""

    def __init__(self, settings: Settings, patch: pytest.MonkeyPatch) -> None:
        self.settings, self.patch = settings, patch
        self.computed: list[tuple[str, set[date]]] = []
        self.open: set[str] = set()
        self.killed_at = self.blocked = ""
        self.same: set[str] = set()
        for stream in TOPOLOGY.streams:
            for table in stream.tables:
                create_table(settings.lake(), table)
        patch.setattr(below, "started", lambda *_: True)
        patch.setattr(below, "closed_days", lambda _, s, d: set() if s.name in self.open else d)
        patch.setattr("rivermark.backfill.replace_changed.mend", self.mend)

    def mend(
        self, _spark: object, _settings: object, stream: Stream, days: set[date], **_: object
    ) -> list[RecomputedTable]:
        if stream.name == self.killed_at:
            raise KilledError
        if stream.name == self.blocked:
            raise PublicationBlocked("its tips are below zero")
        self.computed.append((stream.name, days))
        table = stream.tables[0]
        changed = Changed() if stream.name in self.same else whole_days(table, days)
        return [RecomputedTable(table.name, tuple(days), changed)]

    def follow(self, cause: Reprocessing, topology: Topology = TOPOLOGY) -> Followed:
        self.computed = []
        return follow_up(None, self.settings, topology, cause, run_id="r")  # type: ignore[arg-type]

    def fold(self) -> MergeReport:
        self.computed = []
        return merge_late(self.settings, TOPOLOGY, [], lambda: None, run_id="night")  # type: ignore[arg-type,return-value]

    def owed(self) -> dict[str, set[date]]:
        return pending_days(self.settings.lake(), TOPOLOGY)


@pytest.fixture
def world_below(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Below:
    return Below(settings, monkeypatch)


def changed_on(*days: date) -> Reprocessing:
    """A replacement of the source's days of which one row each differs, at noon."""
    hours = (datetime(d.year, d.month, d.day, 12, tzinfo=UTC) for d in days)
    of_day = {"added": 0, "removed": 0, "changed": 1, "unchanged": 9}
    found = Difference(
        changed=len(days), unchanged=9, days=dict.fromkeys(days, of_day), hours=frozenset(hours)
    )
    return Reprocessing(
        id="cause",
        kind="replaced",
        stream=SOURCE.name,
        first=DAY,
        last=NEXT_DAY,
        at=datetime.now(UTC),
        run_id="r",
        by="test",
        tables={"test/source": TableOutcome("test/source", 0, found, version_after=1)},
    )


def test_what_lies_downstream_comes_in_the_order_of_lineage() -> None:
    assert [s.name for s in TOPOLOGY.downstream(["test/source"])] == ["test/hourly", "test/local"]
    assert TOPOLOGY.downstream(["test/aside"]) == []


def test_only_the_days_that_changed_rows_reach_are_computed(world_below: Below) -> None:
    followed = world_below.follow(changed_on(NEXT_DAY))

    # Of a whole UTC day in New York the first hours belong to the day before.
    expected = [("test/hourly", {NEXT_DAY}), ("test/local", {DAY, NEXT_DAY})]
    assert world_below.computed == expected
    assert followed.left == {}
    assert world_below.owed() == {}


def test_nothing_follows_where_nothing_differs(world_below: Below) -> None:
    world_below.follow(changed_on())
    assert world_below.computed == []

    world_below.same = {"test/hourly"}
    world_below.follow(changed_on(DAY))
    assert world_below.computed == [("test/hourly", {DAY})]


def test_days_that_are_open_are_owed_and_the_fold_after_they_are_closed_computes_them(
    world_below: Below,
) -> None:
    world_below.open = {"test/hourly"}
    followed = world_below.follow(changed_on(DAY))

    assert "still open; the fold after it is closed" in followed.left["test/hourly"]
    assert world_below.computed == []
    assert world_below.owed() == {"test/hourly": {DAY}}
    assert world_below.fold().owed == {"test/hourly": {DAY}}

    world_below.open = set()
    world_below.fold()

    assert [name for name, _ in world_below.computed] == ["test/hourly", "test/local"]
    assert world_below.owed() == {}


def test_a_kill_between_two_streams_is_taken_up_by_the_next_fold(world_below: Below) -> None:
    world_below.killed_at = "test/local"
    with pytest.raises(KilledError):
        world_below.follow(changed_on(DAY))
    assert set(world_below.owed()) == {"test/hourly", "test/local"}

    world_below.killed_at = ""
    world_below.fold()

    assert [name for name, _ in world_below.computed] == ["test/hourly", "test/local"]
    assert world_below.owed() == {}


def test_a_replacement_that_is_killed_before_its_follow_ups_is_finished_by_the_next_fold(
    world_below: Below,
) -> None:
    lake = world_below.settings.lake()
    with pytest.raises(KilledError), promised(lake, TOPOLOGY, SOURCE, [DAY], "r"):
        raise KilledError
    assert set(world_below.owed()) == {"test/hourly", "test/local"}

    world_below.fold()

    assert [name for name, _ in world_below.computed] == ["test/hourly", "test/local"]
    assert world_below.owed() == {}


def test_a_replacement_that_was_refused_owes_nothing(world_below: Below) -> None:
    lake = world_below.settings.lake()
    with pytest.raises(PartitionStillOpen), promised(lake, TOPOLOGY, SOURCE, [DAY], "r"):
        raise PartitionStillOpen("at noon")
    assert world_below.owed() == {}

    with promised(lake, TOPOLOGY, SOURCE, [DAY], "r"):
        world_below.follow(changed_on(DAY))
    assert world_below.owed() == {}


def test_rows_that_break_a_critical_rule_hold_back_their_stream_alone_and_are_owed(
    world_below: Below,
) -> None:
    world_below.blocked = "test/local"

    followed = world_below.follow(changed_on(NEXT_DAY))

    assert followed.left == {"test/local": "its tips are below zero"}
    assert [name for name, _ in world_below.computed] == ["test/hourly"]
    assert world_below.owed() == {"test/local": {DAY, NEXT_DAY}}


def test_a_table_without_days_cannot_follow_and_says_so(world_below: Below) -> None:
    bare = replace(HOURLY, writes=replace(TIPS, name="test/hourly", days=None))

    followed = world_below.follow(changed_on(DAY), Topology([SOURCE, bare]))

    assert "rivermark reset test/hourly" in followed.left["test/hourly"]


def test_only_days_that_are_closed_follow(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    evening = datetime(2024, 3, 2, 18, tzinfo=UTC)
    monkeypatch.setattr(below, "last_reached", lambda *_: evening)

    assert below.closed_days(settings.lake(), HOURLY, {DAY, NEXT_DAY}) == {DAY}
    refreshed = reading("test/refreshed", SOURCE, kind="refresh")
    assert below.closed_days(settings.lake(), refreshed, {DAY, NEXT_DAY}) == {DAY, NEXT_DAY}
    monkeypatch.setattr(below, "last_reached", lambda *_: None)
    assert below.closed_days(settings.lake(), HOURLY, {DAY}) == set()


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
