"""Tables as values: what a declaration refuses, and what a day of one is."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import duckdb
import pytest
from pyspark.sql.types import DateType, LongType, StringType, StructField, StructType, TimestampType

from rivermark.lake.day_predicates import predicate, ranges
from rivermark.lake.lake import Lake
from rivermark.model.errors import DeclarationError, RivermarkError
from rivermark.model.table import Daily, Table

SCHEMA = StructType(
    [
        StructField("id", LongType()),
        StructField("moment", TimestampType()),
        StructField("day", DateType()),
        StructField("note", StringType()),
    ]
)
START = date(2024, 1, 1)


def table(name: str = "test/rows", **more: object) -> Table:
    return Table(name=name, schema=SCHEMA, description="Rows.", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    ["rows", "Test/rows", "test/../rows", "/test/rows", "test//rows", "test/rows/", "test/r w"],
)
def test_a_name_that_could_leave_the_lake_is_refused(name: str) -> None:
    with pytest.raises(DeclarationError, match="expected like"):
        table(name)
    with pytest.raises(RivermarkError, match="not a table name"):
        Lake("/lake").path(name)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"event_time": "when"}, "no column 'when'"),
        ({"keys": ("id", "key")}, "no column 'key'"),
        ({"personal": ("name",)}, "no column 'name'"),
        ({"event_time": "day"}, "'day' is not a timestamp"),
        ({"days": Daily("note", START)}, "'note' is not a timestamp or date"),
        ({"days": Daily("nothing", START)}, "'nothing' is not a timestamp or date"),
    ],
)
def test_a_reference_to_a_column_that_cannot_serve_is_refused(
    declared: dict[str, Any], message: str
) -> None:
    with pytest.raises(DeclarationError, match=message):
        table(**declared)


def test_a_day_of_new_york_has_23_24_or_25_hours() -> None:
    days = Daily("moment", START, zone="America/New_York")

    def hours(day: date) -> float:
        start, end = days.bounds(day, day)
        return (end - start) / timedelta(hours=1)

    assert hours(date(2024, 3, 9)) == 24
    assert hours(date(2024, 3, 10)) == 23
    assert hours(date(2024, 11, 3)) == 25
    assert days.bounds(date(2024, 3, 10), date(2024, 3, 10))[0] == datetime(
        2024, 3, 10, 5, tzinfo=UTC
    )


def test_days_join_to_stretches_without_a_gap() -> None:
    days = [date(2024, 3, d) for d in (3, 1, 2, 2, 7)]

    assert ranges(days) == [
        (date(2024, 3, 1), date(2024, 3, 3)),
        (date(2024, 3, 7), date(2024, 3, 7)),
    ]


def test_the_rows_of_days_are_those_from_midnight_to_midnight_of_the_zone() -> None:
    rows = predicate(
        table(days=Daily("moment", START, zone="America/New_York")), [date(2024, 3, 10)]
    )
    moments = ["2024-03-10T04:59:59.999999Z", "2024-03-10T05:00:00Z", "2024-03-11T03:59:59.999999Z",
               "2024-03-11T04:00:00Z"]  # fmt: skip

    assert [holds(rows, "moment", f"TIMESTAMPTZ '{m}'") for m in moments] == [
        False,
        True,
        True,
        False,
    ]


def test_the_rows_of_days_are_those_dates_alone() -> None:
    rows = predicate(table(days=Daily("day", START)), [date(2024, 3, 1), date(2024, 3, 3)])

    found = [d for d in range(1, 6) if holds(rows, "day", f"DATE '2024-03-0{d}'")]
    assert found == [1, 3]


def holds(condition: str, column: str, value: str) -> bool:
    """Whether a row with that value meets the condition, by another engine."""
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        found = engine.execute(f"SELECT {condition} FROM (SELECT {value} AS {column})").fetchone()  # noqa: S608
    assert found is not None
    return bool(found[0])


def test_a_table_without_days_has_no_rows_of_a_day() -> None:
    with pytest.raises(DeclarationError, match="not kept by days"):
        predicate(table(), [START])
