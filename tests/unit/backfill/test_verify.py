"""Which days are computed again, and that a fingerprint knows rows and not their order."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pyarrow as pa
from pyarrow import dataset

from rivermark.backfill.verify import REACH, Verified, fingerprint, sample
from tests.unit.lake.conftest import NOON, RIDES, rides

FIRST = date(2024, 1, 1)


def days(count: int) -> list[date]:
    return [FIRST + timedelta(days=n) for n in range(count)]


def test_each_closed_day_has_its_turn_beside_the_newest() -> None:
    assert sample([]) == []
    assert sample(days(1)) == days(1)
    closed = days(REACH + 40)
    drawn = [sample(closed, today=date(2026, 1, 1) + timedelta(days=n)) for n in range(REACH)]
    assert {newest for _, newest in drawn} == {closed[-1]}
    assert sorted(other for other, _ in drawn) == closed[-REACH - 1 : -1]


def test_a_fingerprint_knows_rows_and_their_number_and_not_their_order() -> None:
    def of(*ids: int, at: datetime = NOON) -> tuple[int, int]:
        print_ = fingerprint(dataset.dataset(rides(*ids, at=at)), RIDES, NOON.date())
        return print_.rows, print_.sum

    assert of(1, 2, 3) == of(3, 1, 2)
    assert of(1, 2, 2) != of(1, 1, 2)
    assert of(1, 2) != of(1, 3)
    assert of(1, at=NOON + timedelta(days=1)) == of() == (0, 0)
    assert of(1, at=NOON + timedelta(seconds=1)) != of(1)


def test_fields_without_a_value_count_too() -> None:
    empty = pa.table(
        {"id": pa.nulls(1, pa.int64()), "at": pa.array([NOON], rides().schema[1].type)}
    )
    known = fingerprint(dataset.dataset(empty), RIDES, NOON.date())
    assert known.rows == 1
    assert known != fingerprint(dataset.dataset(rides(0)), RIDES, NOON.date())


def test_a_day_that_differs_says_what_to_do() -> None:
    told = Verified("test/hours", FIRST, differences={"test/hours": "1 added"}).sentence
    assert "2024-01-01 is not what the inputs give: test/hours: 1 added" in told
    assert "rivermark reprocess test/hours --from 2024-01-01 --follow-ups" in told
    told = Verified("test/hours", FIRST, skipped="it is pending").sentence
    assert told == "test/hours: 2024-01-01: not compared: it is pending"
