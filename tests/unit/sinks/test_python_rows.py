"""Times that Python has not, in rows that a sink writes as Python objects."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rivermark.sinks.json_rows import json_rows
from rivermark.sinks.postgres.column_types import spelled
from rivermark.sinks.python_rows import FarTime, _calendar, iso_8601, python_rows

MICROS = 1_000_000
LAST = 253_402_300_799
"""The last second of the year 9999."""


@given(st.dates())
def test_days_are_those_of_the_calendar(day: date) -> None:
    assert _calendar((day - date(1970, 1, 1)).days) == (day.year, day.month, day.day)


@given(st.dates(min_value=date(400, 1, 1), max_value=date(9599, 12, 31)))
def test_the_calendar_repeats_itself_in_four_hundred_years(day: date) -> None:
    days = (day - date(1970, 1, 1)).days
    for eras in (-20, -2, 2, 20):
        year, *rest = _calendar(days + eras * 146_097)
        assert (year, *rest) == (day.year + 400 * eras, day.month, day.day)


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
    rows = json_rows(pa.table(columns))
    far = "+10000-01-01T00:00:00.000005Z"
    last = pa.scalar(stamps[0], pa.int64()).cast(utc).as_py()
    assert [row["at"] for row in rows] == [last, far, None]
    assert [row["day"] for row in rows] == [date(9999, 12, 31), "+10000-01-01", "0000-12-31"]
    assert [row["by"] for row in rows] == [None, [("a", far)], []]
    assert rows[0]["in"] == {"at": far, "all": [last, far, None]}
    assert [row["id"] for row in rows] == [1, 2, 3]


def test_a_far_time_is_spelled_as_each_service_reads_it() -> None:
    assert iso_8601(FarTime(-43, 3, 15, "12:00:00")) == "-0043-03-15T12:00:00Z"
    assert spelled(FarTime(-43, 3, 15, "12:00:00")) == "0044-03-15 12:00:00+00 BC"
    assert spelled(FarTime(0, 3, 15, None)) == "0001-03-15 BC"
    assert spelled(FarTime(10_000, 1, 1, None)) == "10000-01-01"
    millis = pa.array([(LAST + 1) * 1000 + 7], pa.int64()).cast(pa.timestamp("ms", "UTC"))
    rows = python_rows(pa.table({"at": millis}), iso_8601)
    assert rows == [{"at": "+10000-01-01T00:00:00.007000Z"}]
