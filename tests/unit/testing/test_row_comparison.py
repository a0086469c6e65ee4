"""Tables of any form are compared, and a difference is shown."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import Row

from rivermark.testing import assert_rows_equal

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


class Ride(msgspec.Struct):
    ride: int
    fare: float


@dataclass
class Trip:
    ride: int
    fare: float


Named = namedtuple("Named", "ride fare")

FORMS: list[Any] = [
    [{"fare": 2.5, "ride": 2}, {"ride": 1, "fare": 1.5}],
    [(2, 2.5), (1, 1.5)],
    [[1, 1.5], [2, 2.5]],
    [Row(ride=1, fare=1.5), Row(ride=2, fare=2.5)],
    [Named(1, 1.5), Named(2, 2.5)],
    [Ride(1, 1.5), Ride(2, 2.5)],
    [Trip(1, 1.5), Trip(2, 2.5)],
    pa.table({"fare": [1.5, 2.5], "ride": [1, 2]}),
    iter([Row(ride=1, fare=1.5), Row(ride=2, fare=2.5)]),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: type(form).__name__)
def test_forms_of_one_table_are_equal_in_any_order(form: Any) -> None:
    assert_rows_equal(form, [Row(ride=2, fare=2.5), Row(ride=1, fare=1.5)])


def test_a_difference_shows_both_tables_with_the_rows_marked() -> None:
    with pytest.raises(AssertionError) as told:
        assert_rows_equal([Ride(1, 1.5), Ride(3, 9.0)], [(2, 2.5), (1, 1.5), (4, 0.5)])

    assert str(told.value).splitlines() == [
        "rows differ: 1 of 2 in actual, 2 of 3 in expected",
        "actual:",
        "  ride | fare",
        "  1    | 1.5",
        "> 3    | 9.0",
        "expected:",
        "  ride | fare",
        "  1    | 1.5",
        "> 2    | 2.5",
        "> 4    | 0.5",
    ]


def test_each_row_counts_as_often_as_it_is_there() -> None:
    with pytest.raises(AssertionError, match="1 of 3 in actual, 0 of 2 in expected"):
        assert_rows_equal([(1,), (1,), (2,)], [(2,), (1,)])


def test_order_counts_where_it_is_asked_for() -> None:
    assert_rows_equal([(1,), (2,)], [(1,), (2,)], in_order=True)
    with pytest.raises(AssertionError, match="2 of 3 in actual, 1 of 2 in expected"):
        assert_rows_equal([(1,), (2,), (3,)], [(1,), (3,)], in_order=True)


def test_other_columns_are_named_and_some_can_be_chosen() -> None:
    wide = [{"ride": 1, "fare": 1.5, "tip": 0}]
    with pytest.raises(AssertionError, match=r"only in actual \['tip'\], only in expected \[\]"):
        assert_rows_equal(wide, [Ride(1, 1.5)])
    assert_rows_equal(wide, [Ride(1, 1.5)], columns=["ride", "fare"])
    assert_rows_equal(wide, [(0, 1)], columns=["tip", "ride"])
    with pytest.raises(AssertionError, match=r"\(no such column\)"):
        assert_rows_equal(wide, [{"day": 1}], columns=["day"])
    with pytest.raises(AssertionError, match=r"only in expected \['tip'\]"):
        assert_rows_equal([{"ride": 1}, {"ride": 2}], [{"ride": 1}, {"ride": 2, "tip": 0}])


def test_a_tuple_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="has 1 values for the columns ride, fare"):
        assert_rows_equal([Ride(1, 1.5)], [(1,)])


def test_what_is_no_row_is_refused() -> None:
    with pytest.raises(TypeError, match="'ride' is no row"):
        assert_rows_equal(["ride"], [("ride",)])


def test_instants_are_compared_and_what_has_no_zone_is_local() -> None:
    local = NOON.astimezone().replace(tzinfo=None)
    elsewhere = NOON.astimezone(timezone(timedelta(hours=5)))
    assert_rows_equal([(local,), (elsewhere,)], [(NOON,), (NOON,)])
    with pytest.raises(AssertionError, match="2024-03-01T12:00:00"):
        assert_rows_equal([(NOON,)], [(NOON + timedelta(microseconds=1),)])


def test_nested_values_and_nan_are_compared() -> None:
    arrow = pa.table(
        {
            "of": pa.array([[("a", 1), ("b", 2)]], pa.map_(pa.string(), pa.int64())),
            "inner": [{"x": 1, "y": [1, 2]}],
            "number": [float("nan")],
        }
    )
    assert_rows_equal(
        arrow,
        [Row(of={"b": 2, "a": 1}, inner=Row(y=[1, 2], x=1), number=float("nan"))],
    )


def test_an_empty_table_equals_no_rows_only() -> None:
    assert_rows_equal([], pa.table({"ride": pa.array([], pa.int64())}))
    with pytest.raises(AssertionError, match="0 of 0 in actual, 1 of 1 in expected"):
        assert_rows_equal([], [Ride(1, 1.5)])


def test_a_long_table_shows_what_differs() -> None:
    many = [(n,) for n in range(1000)]
    with pytest.raises(AssertionError) as told:
        assert_rows_equal([*many, (-1,)], many)

    assert "> -1" in str(told.value)
    assert "  ... 971 more" in str(told.value)
    assert len(str(told.value).splitlines()) < 80
