"""Pending days and merges of a lake that commit a55bf76 wrote: read, and resolved by a merge."""

from __future__ import annotations

import tarfile
from datetime import date
from pathlib import Path
from typing import Final

import pytest

from rivermark.backfill.late.merge_log import interrupted_merges, merged_through, rows_merged
from rivermark.backfill.pending import PENDING_AND_MERGES, add_pending, resolve_pending
from rivermark.settings import Settings
from tests.oracles.shop import PAYMENTS, SHOP, write
from tests.unit.backfill.lineage import Lineage

EARLIER: Final = Path(__file__).parents[2] / "data" / "earlier_pending" / "folds.tar.gz"
RESULTS_OF: Final = "table-1"
"""The id that the earlier lake's table of payments had."""


def day(number: int) -> date:
    return date(2026, 3, number)


@pytest.fixture
def earlier(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Lineage:
    folder = Path(settings.lake().path(PENDING_AND_MERGES)).parents[1]
    folder.mkdir(parents=True)
    with tarfile.open(EARLIER) as packed:
        packed.extractall(folder, filter="data")
    write(settings, PAYMENTS, [])
    return Lineage(settings, SHOP, monkeypatch)


def test_days_and_merges_of_an_earlier_version_are_read(
    earlier: Lineage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The list of its newest merge, a reprocessing, and a merge that was interrupted.
    assert earlier.pending == {"shop/paid": {day(4), day(5), day(6)}}
    assert interrupted_merges(earlier.context.lake) == {"fold-2"}

    monkeypatch.setattr("rivermark.backfill.late.merge_log.table_id", lambda *_: RESULTS_OF)
    lake = earlier.context.lake
    assert (rows_merged(lake, PAYMENTS), merged_through(lake, PAYMENTS)) == (7, 41)


def test_the_next_merge_resolves_them(earlier: Lineage) -> None:
    report = earlier.merge()

    assert report.resumed == 1
    assert earlier.computed == [("shop/paid", {day(4), day(5), day(6)})]
    assert earlier.pending == {}
    assert earlier.merge().resumed == 0


def test_a_day_stays_pending_while_any_cause_is_open(earlier: Lineage) -> None:
    earlier.merge()
    lake, days = earlier.context.lake, {"shop/paid": {day(8), day(9)}}
    add_pending(lake, "one", days, "run")
    add_pending(lake, "other", {"shop/paid": {day(9)}}, "run")

    resolve_pending(lake, ["one"], ("rest", {"shop/paid": {day(8)}}), "run")
    assert earlier.pending == days
    resolve_pending(lake, ["other", "rest"], None, "run")
    assert earlier.pending == {}
