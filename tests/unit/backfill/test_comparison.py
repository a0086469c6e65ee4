"""Rows of days compared by key: what came, went, changed, and how the sums moved."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from rivermark.backfill.comparison import compare
from rivermark.backfill.difference import HIDDEN, Difference
from rivermark.backfill.staging import ordered_rows
from rivermark.model.table import Daily
from tests.unit.backfill.conftest import DAY, NEXT_DAY, TIPS, Tip, as_dataset, tips


def difference(before: list[Tip], after: list[Tip], last: date = DAY) -> Difference:
    return compare(as_dataset(tips(*before)), as_dataset(tips(*after)), TIPS, DAY, last)


def test_rows_are_paired_by_key_and_each_difference_is_counted() -> None:
    found = difference(
        [(1, "1.00"), (2, "2.00"), (3, "3.00")], [(1, "1.00"), (2, "2.50"), (4, "4")]
    )

    assert (found.added, found.removed, found.changed, found.unchanged) == (1, 1, 1, 1)
    assert found.columns == {"tip": 1}
    assert not found.same
    assert (found.rows_before, found.rows_after) == (3, 3)
    assert found.days_that_differ() == [DAY]


def test_sums_are_told_by_day_before_and_after() -> None:
    before: list[Tip] = [(1, "1.00"), (2, "2.00", NEXT_DAY)]
    found = difference(before, [(1, "1.50"), (2, "2.00", NEXT_DAY)], NEXT_DAY)

    assert [(s.day, s.column, s.before, s.after) for s in found.sums] == [
        (DAY, "tip", Decimal("1.00"), Decimal("1.50")),
        (NEXT_DAY, "tip", Decimal("2.00"), Decimal("2.00")),
    ]
    assert found.days_that_differ() == [DAY]


def test_samples_show_what_changed_and_never_a_personal_value() -> None:
    found = difference([(1, "1.00"), (2, "2.00")], [(1, "1.50", DAY, "Bob"), (3, "3.00")])

    by_kind = {sample.kind: sample for sample in found.samples}
    assert by_kind["changed"].key == {"ride": 1}
    assert by_kind["changed"].values == {
        "driver": (HIDDEN, HIDDEN),
        "tip": (Decimal("1.00"), Decimal("1.50")),
    }
    assert by_kind["removed"].key == {"ride": 2}
    assert by_kind["added"].values["driver"] == HIDDEN
    assert "Ann" not in repr(found)
    assert "Bob" not in repr(found)


def test_a_row_that_moves_to_another_day_changes_both() -> None:
    before: list[Tip] = [(1, "1.00"), (2, "2.00", NEXT_DAY)]
    after: list[Tip] = [(1, "1.00", NEXT_DAY), (2, "2.00", NEXT_DAY)]
    found = difference(before, after, NEXT_DAY)

    assert (found.added, found.removed, found.changed, found.unchanged) == (1, 1, 0, 1)
    assert found.days_that_differ() == [DAY, NEXT_DAY]
    assert {(s.day, s.before, s.after) for s in found.sums} == {
        (DAY, Decimal("1.00"), None),
        (NEXT_DAY, Decimal("2.00"), Decimal("3.00")),
    }
    noon = datetime(2024, 3, 1, 12, tzinfo=UTC)
    assert found.hours == {noon, noon + timedelta(days=1)}


def test_rows_of_other_days_are_not_looked_at() -> None:
    found = difference([(1, "1.00"), (2, "2.00", NEXT_DAY)], [(1, "1.00"), (9, "9", NEXT_DAY)])

    assert found.same
    assert found.unchanged == 1


def test_rows_that_share_a_key_are_paired_one_by_one() -> None:
    found = difference([(1, "1.00"), (1, "1.00"), (1, "2.00")], [(1, "1.00"), (1, "1.00")])

    assert (found.removed, found.unchanged) == (1, 2)


def test_without_a_key_whole_rows_are_paired() -> None:
    bare = replace(TIPS, keys=())
    found = compare(
        as_dataset(tips((1, "1.00"), (1, "1.00"))),
        as_dataset(tips((1, "1.00"), (1, "2"))),
        bare,
        DAY,
        DAY,
    )

    assert (found.added, found.removed, found.changed, found.unchanged) == (1, 1, 0, 1)


def test_a_day_is_one_of_the_table_s_own_zone() -> None:
    late = replace(TIPS, days=Daily(column="at", start=DAY, zone="Pacific/Kiritimati"))
    # Noon in UTC is two in the morning of the next day, fourteen hours ahead.
    rows = as_dataset(tips((1, "1.00")))

    assert compare(rows, rows, late, DAY, DAY).unchanged == 0
    assert compare(rows, rows, late, NEXT_DAY, NEXT_DAY).days[NEXT_DAY]["unchanged"] == 1


def test_the_order_of_rows_is_decided_by_their_values_alone() -> None:
    one = tips((3, "1"), (1, "2.00"), (2, "3.00"), (7, "1", NEXT_DAY))
    other = tips((2, "3.00"), (7, "1", NEXT_DAY), (1, "2.00"), (3, "1"))

    first, second = (ordered_rows(as_dataset(t), TIPS, [DAY]) for t in (one, other))

    assert first.equals(second)
    assert first["ride"].to_pylist() == [1, 2, 3]
