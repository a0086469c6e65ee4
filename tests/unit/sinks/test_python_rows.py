"""Rows that a sink writes as Python objects: times that Python has not, numbers that JSON lacks."""

from __future__ import annotations

import json
import math
from datetime import date

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermark.model.json_text import far_date, json_text
from rivermark.sinks.postgres.column_types import spelled
from rivermark.sinks.python_rows import python_rows

MICROS = 1_000_000
LAST = 253_402_300_799
"""The last second of the year 9999."""


@given(st.dates())
def test_days_are_those_of_the_calendar(day: date) -> None:
    assert far_date((day - date(1970, 1, 1)).days) == day.isoformat()


@given(st.dates(min_value=date(400, 1, 1), max_value=date(9599, 12, 31)))
def test_the_calendar_repeats_itself_in_four_hundred_years(day: date) -> None:
    days = (day - date(1970, 1, 1)).days
    for eras in (-50, -27, 30, 500):
        year, month, of_month = far_date(days + eras * 146_097).rsplit("-", 2)
        assert int(year) == day.year + 400 * eras
        assert (int(month), int(of_month)) == (day.month, day.day)
        assert year[0] == "-" if int(year) < 0 else year[0] == "+" or int(year) < 10_000


def test_times_beyond_the_calendar_are_texts_and_all_others_as_ever() -> None:
    utc, stamps = pa.timestamp("us", "UTC"), [LAST * MICROS, (LAST + 1) * MICROS + 5, None]
    nested = pa.struct({"at": utc, "all": pa.list_(utc)})
    columns = {
        "id": pa.array([1, 2, 3]),
        "at": pa.array(stamps, pa.int64()).cast(utc),
        "day": pa.array([2_932_896, 2_932_897, -719_163], pa.int32()).cast(pa.date32()),
        "by": pa.array([None, [("a", stamps[1])], []], pa.map_(pa.string(), pa.int64())).cast(
            pa.map_(pa.string(), utc)
        ),
        "in": pa.StructArray.from_arrays(
            [
                pa.array([stamps[1]] * 3, pa.int64()).cast(utc),
                pa.array([stamps] * 3, pa.list_(pa.int64())).cast(pa.list_(utc)),
            ],
            fields=[*nested],
        ),
    }
    rows = python_rows(pa.table(columns))
    far = "+10000-01-01T00:00:00.000005Z"
    last = pa.scalar(stamps[0], pa.int64()).cast(utc).as_py()
    assert [row["at"] for row in rows] == [last, far, None]
    assert [row["day"] for row in rows] == [date(9999, 12, 31), "+10000-01-01", "0000-12-31"]
    assert [row["by"] for row in rows] == [None, [("a", far)], []]
    assert rows[0]["in"] == {"at": far, "all": [last, far, None]}
    assert [row["id"] for row in rows] == [1, 2, 3]


def test_a_far_time_is_spelled_as_postgres_reads_it() -> None:
    assert spelled("-0043-03-15T12:00:00Z") == "0044-03-15 12:00:00+00 BC"
    assert spelled("0000-03-15") == "0001-03-15 BC"
    assert spelled("+10000-01-01") == "10000-01-01"
    millis = pa.array([(LAST + 1) * 1000 + 7], pa.int64()).cast(pa.timestamp("ms", "UTC"))
    table = pa.table({"at": millis})
    assert python_rows(table) == [{"at": "+10000-01-01T00:00:00.007000Z"}]
    assert python_rows(table, spelled) == [{"at": "10000-01-01 00:00:00.007000+00"}]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_numbers_that_json_lacks_are_texts_however_deep(kind: pa.DataType) -> None:
    odd = [1.5, math.nan, math.inf, -math.inf, None]
    texts = [1.5, "NaN", "Infinity", "-Infinity", None]
    rows = pa.table(
        {
            "id": pa.array([2**53 + n for n in range(len(odd))]),
            "plain": pa.array(odd, kind),
            "listed": pa.array([[value] for value in odd], pa.list_(kind)),
            "inside": pa.array(
                [{"float": [("k", value)]} for value in odd],
                pa.struct({"float": pa.map_(pa.string(), kind)}),
            ),
        }
    )
    assert [json.loads(json_text(row)) for row in python_rows(rows)] == [
        {"id": 2**53 + n, "plain": text, "listed": [text], "inside": {"float": [["k", text]]}}
        for n, text in enumerate(texts)
    ]
    assert python_rows(rows.slice(0, 0)) == []


def test_r25_a_float_has_its_own_digits() -> None:
    floats = pa.array([0.1, 1e10, math.nan, None, 3.4028235e38, -0.0], pa.float32())
    for rows in (pa.table({"v": floats}), pa.record_batch({"v": floats})):
        texts = [json_text(row).decode() for row in python_rows(rows)]
        wanted = ["0.1", "10000000000.0", '"NaN"', "null", "3.4028235e38", "-0.0"]
        assert texts == [f'{{"v":{text}}}' for text in wanted]
