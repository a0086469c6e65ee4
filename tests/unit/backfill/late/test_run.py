"""What follows from a fold is computed in the order of the lineage, also after a kill or a wait."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import Any

import pytest

import rivermark.backfill.downstream
from rivermark.backfill.affected_days import whole_days
from rivermark.backfill.late.run import MergeReport, merge_late
from rivermark.backfill.pending import pending_days
from rivermark.backfill.replace_changed import RecomputedTable
from rivermark.lake.schema import create_table
from rivermark.model.stream import Stream
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.settings import Settings
from tests.oracles.shop import FIRST, ORDERS, PAID, PAYMENTS, sent, write

REPORT = Stream(
    name="shop/report",
    reads=(PAID,),
    build=lambda paid: paid,
    writes=Table(
        name="shop/report",
        schema=PAID.tables[0].schema,
        description="What was paid.",
        event_time="at",
        days=PAID.tables[0].days,
    ),
    description="What was paid.",
    group="shop",
)
TOPOLOGY = Topology([ORDERS, PAYMENTS, PAID, REPORT])


class KilledError(Exception):
    """The end of a process, made by a test."""


class Lineage:
    """Streams that have begun, with days that differ when they are computed first."""

    def __init__(self, settings: Settings, patch: pytest.MonkeyPatch) -> None:
        self.settings = settings
        self.computed: list[str] = []
        self.replaced: set[str] = set()
        self.killed_at = ""
        self.open: set[str] = set()
        for stream in (PAID, REPORT):
            for table in stream.tables:
                create_table(settings.lake(), table)
        patch.setattr(rivermark.backfill.downstream, "started", lambda *_: True)
        patch.setattr(rivermark.backfill.downstream, "closed_days", self.closed)
        patch.setattr("rivermark.backfill.replace_changed.mend", self.mend)

    def closed(self, _lake: object, stream: Stream, days: set[date]) -> set[date]:
        return set() if stream.name in self.open else days

    def mend(
        self, _spark: object, _lake: object, stream: Stream, days: Collection[date], **_: Any
    ) -> list[RecomputedTable]:
        if stream.name == self.killed_at:
            raise KilledError
        self.computed.append(stream.name)
        table = RecomputedTable(stream.tables[0].name, tuple(sorted(days)))
        if stream.name not in self.replaced:
            table.changed = whole_days(stream.tables[0], days)
        self.replaced.add(stream.name)
        return [table]

    def fold(self) -> MergeReport:
        self.computed = []
        ingests = [ORDERS, PAYMENTS]
        return merge_late(self.settings, TOPOLOGY, ingests, lambda: None, run_id="r")  # type: ignore[arg-type,return-value]

    def owed(self) -> dict[str, set[date]]:
        return pending_days(self.settings.lake(), TOPOLOGY)


@pytest.fixture
def lineage(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Lineage:
    write(settings, PAYMENTS, sent(1))
    return Lineage(settings, monkeypatch)


def test_streams_follow_while_their_inputs_differ(lineage: Lineage) -> None:
    lineage.fold()
    assert lineage.computed == ["shop/paid", "shop/report"]

    lineage.fold()
    assert lineage.computed == []


def test_where_nothing_differs_nothing_follows(lineage: Lineage) -> None:
    lineage.replaced.add("shop/paid")

    lineage.fold()

    assert lineage.computed == ["shop/paid"]


def test_after_a_kill_all_below_is_computed_although_the_table_above_is_right_by_now(
    lineage: Lineage,
) -> None:
    lineage.killed_at = "shop/report"
    with pytest.raises(KilledError):
        lineage.fold()
    assert lineage.owed() == {"shop/paid": {FIRST}, "shop/report": {FIRST}}

    lineage.killed_at = ""
    assert lineage.fold().taken_up == 1

    assert lineage.computed == ["shop/paid", "shop/report"]
    assert lineage.owed() == {}


def test_a_day_that_is_open_is_owed_and_computed_once_it_is_closed_also_after_a_kill(
    lineage: Lineage,
) -> None:
    lineage.open = {"shop/paid"}
    assert lineage.fold().owed == {"shop/paid": {FIRST}}
    assert lineage.computed == []
    assert lineage.fold().owed == {"shop/paid": {FIRST}}

    lineage.open, lineage.killed_at = set(), "shop/report"
    with pytest.raises(KilledError):
        lineage.fold()
    lineage.killed_at = ""
    lineage.fold()

    assert lineage.computed == ["shop/paid", "shop/report"]
    assert lineage.owed() == {}
