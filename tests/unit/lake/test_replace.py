"""Replacing whole days: nothing else is touched, and doing it again changes nothing."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from deltalake import DeltaTable, write_deltalake

from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.replace import replace_days
from rivermark.model.errors import RivermarkError
from tests.unit.lake.conftest import NOON, RIDES, ids, rides

FIRST, SECOND = date(2024, 3, 1), date(2024, 3, 2)
DAY = timedelta(days=1)


@pytest.fixture
def two_days(lake: Lake) -> Lake:
    write_deltalake(lake.path(RIDES), rides(1, 2), mode="append")
    write_deltalake(lake.path(RIDES), rides(3, 4, at=NOON + DAY), mode="append")
    return lake


def test_only_the_days_given_are_replaced_however_often(two_days: Lake) -> None:
    for _ in range(2):
        replace_days(two_days, RIDES, rides(10), [FIRST], {"run": "r"})
        assert ids(two_days) == [3, 4, 10]
    newest = CommitLog(two_days.path(RIDES)).latest()
    assert newest is not None
    assert newest.metadata == {"run": "r"}


def test_a_day_without_rows_is_emptied(two_days: Lake) -> None:
    replace_days(two_days, RIDES, rides(), [SECOND], {})

    assert ids(two_days) == [1, 2]


def test_a_row_of_another_day_is_refused_and_nothing_changes(two_days: Lake) -> None:
    with pytest.raises(Exception, match="1 rows failed validation"):
        replace_days(two_days, RIDES, rides(10, at=NOON + DAY), [FIRST], {})
    assert ids(two_days) == [1, 2, 3, 4]


def test_b057_without_a_day_nothing_is_replaced(two_days: Lake) -> None:
    with pytest.raises(RivermarkError, match="no days to replace were given"):
        replace_days(two_days, RIDES, rides(10), [], {})
    assert ids(two_days) == [1, 2, 3, 4]


def test_a_day_that_had_no_row_is_filled_by_a_commit_that_streams_skip(two_days: Lake) -> None:
    third = date(2024, 3, 3)

    replace_days(two_days, RIDES, rides(10, at=NOON + 2 * DAY), [third], {})

    assert ids(two_days) == [1, 2, 3, 4, 10]
    log = CommitLog(two_days.path(RIDES))
    newest = log.latest()
    assert newest is not None
    assert log.takes_files(newest.version)


def foreign_writer(monkeypatch: pytest.MonkeyPatch, lake: Lake, times: int) -> None:
    """Somebody who knows no lock appends to the first day each time that a replacing has begun."""
    left = list(range(100, 100 + times))

    def opened(path: str) -> DeltaTable:
        found = DeltaTable(path)
        if left:
            write_deltalake(path, rides(left.pop()), mode="append")
        return found

    monkeypatch.setattr("rivermark.lake.replace.delta_table", opened)


def test_a_commit_of_a_faster_writer_is_met_again_and_counted(
    two_days: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    conflicts: list[int] = []
    foreign_writer(monkeypatch, two_days, times=2)

    replace_days(two_days, RIDES, rides(10), [FIRST], {}, on_conflict=lambda: conflicts.append(1))

    assert ids(two_days) == [3, 4, 10]
    assert len(conflicts) == 2


def test_after_too_many_conflicts_nothing_is_replaced(
    two_days: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign_writer(monkeypatch, two_days, times=100)

    with pytest.raises(RivermarkError, match="nothing was replaced"):
        replace_days(two_days, RIDES, rides(10), [FIRST], {})

    assert {1, 2, 3, 4} <= {*ids(two_days)}
    assert 10 not in ids(two_days)


def test_m015_a_table_that_takes_appends_only_is_named_as_one(two_days: Lake) -> None:
    table = DeltaTable(two_days.path(RIDES))
    table.alter.set_table_properties({"delta.appendOnly": "true"})

    with pytest.raises(RivermarkError, match=r"only accepts? appends \(delta.appendOnly=true\)"):
        replace_days(two_days, RIDES, rides(10), [FIRST], {})
