"""What follows from a merge is computed in lineage order, also after a kill or a wait."""

from __future__ import annotations

import pytest

from rivermark.model.stream import Stream
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.settings import Settings
from tests.oracles.shop import FIRST, ORDERS, PAID, PAYMENTS, sent, write
from tests.unit.backfill.lineage import KilledError, Lineage

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


@pytest.fixture
def lineage(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Lineage:
    write(settings, PAYMENTS, sent(1))
    return Lineage(settings, Topology([ORDERS, PAYMENTS, PAID, REPORT]), monkeypatch)


def test_streams_follow_while_their_inputs_differ(lineage: Lineage) -> None:
    lineage.merge()
    assert lineage.streams_computed == ["shop/paid", "shop/report"]

    lineage.merge()
    assert lineage.computed == []


def test_after_a_kill_all_downstream_is_computed_although_the_first_table_is_right_by_now(
    lineage: Lineage,
) -> None:
    lineage.killed_at = "shop/report"
    with pytest.raises(KilledError):
        lineage.merge()
    assert lineage.pending == {"shop/paid": {FIRST}, "shop/report": {FIRST}}

    lineage.killed_at = ""
    assert lineage.merge().resumed == 1

    assert lineage.streams_computed == ["shop/paid", "shop/report"]
    assert lineage.pending == {}


def test_an_open_day_is_pending_and_computed_once_it_is_closed_also_after_a_kill(
    lineage: Lineage,
) -> None:
    lineage.open = {"shop/paid"}
    for _ in range(2):
        assert lineage.merge().downstream.pending == {"shop/paid": {FIRST}}
        assert lineage.computed == []

    lineage.open, lineage.killed_at = set(), "shop/report"
    with pytest.raises(KilledError):
        lineage.merge()
    lineage.killed_at = ""
    lineage.merge()

    assert lineage.streams_computed == ["shop/paid", "shop/report"]
    assert lineage.pending == {}
