"""Reaches of operators against the margin of a stream."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.sql import DataFrame

from rivermark import Daily, Stream, Table
from rivermark.model.errors import DeclarationError
from rivermark.operators.reach import BuildReach, Reach
from rivermark.runtime.query.finality import build_days_of, check_margin, finished_after

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
INPUT = Table(name="test/events", schema="at timestamp", description="Events.", event_time="at")


def stream(column: str = "window_start", zone: str = "UTC", **changes: Any) -> Stream:
    table = Table(
        name="test/counts",
        schema="window_start timestamp, window_end timestamp, day date",
        description="Counts.",
        days=Daily(column, date(2024, 1, 1), zone),
    )
    declared: dict[str, Any] = {"lateness": HOUR, "group": "test", "build": lambda rows: rows}
    return Stream(reads=(INPUT,), writes=table, **(declared | changes))


def window(size: timedelta, step: timedelta) -> Reach:
    return Reach("window", f"windows of {size}", size, step)


REPEATS = Reach("repeats", "first_of_each within 3 days", 3 * DAY)


@pytest.mark.parametrize(
    ("declared", "operators"),
    [
        (stream(), [window(HOUR, HOUR)]),
        (stream(), [window(DAY, DAY)]),
        (stream(kind="refresh"), [window(HOUR, HOUR)]),
        (stream(margin=2 * DAY), [REPEATS]),
        (stream(margin=3 * DAY), [window(DAY, HOUR), REPEATS]),
        (stream("window_end", kind="refresh", margin=HOUR), [window(HOUR, HOUR)]),
    ],
)
def test_a_margin_that_covers_what_operators_reach_for_is_taken(
    declared: Stream, operators: list[Reach]
) -> None:
    check_margin(declared, BuildReach(operators=operators))


@pytest.mark.parametrize(
    ("declared", "operators", "needed"),
    [
        (stream(), [REPEATS], "3 days, 0:00:00"),
        (stream(), [window(7 * DAY, 7 * DAY)], "6 days, 0:00:00"),
        (stream(margin=DAY), [REPEATS, window(DAY, HOUR)], "3 days, 23:00:00"),
        (stream("window_end", kind="refresh"), [window(HOUR, HOUR)], "1:00:00"),
        (stream(kind="refresh"), [window(HOUR, HOUR / 4)], "0:45:00"),
        (stream(zone="Asia/Kolkata", kind="refresh"), [window(HOUR, HOUR)], "0:30:00"),
    ],
)
def test_a_margin_that_does_not_is_refused_with_one_that_would(
    declared: Stream, operators: list[Reach], needed: str
) -> None:
    with pytest.raises(DeclarationError, match=f"'test/counts'.* `margin` of at least {needed}"):
        check_margin(declared, BuildReach(operators=operators))


@pytest.mark.parametrize(
    ("declared", "operator", "after"),
    [
        (stream(), window(HOUR, HOUR), timedelta(0)),
        (stream(), window(HOUR, HOUR / 4), 0.75 * HOUR),
        (stream(zone="America/New_York"), window(HOUR, HOUR), timedelta(0)),
        (stream(zone="Asia/Kolkata"), window(HOUR, HOUR), HOUR / 2),
        (stream("window_end"), window(HOUR, HOUR / 4), timedelta(0)),
    ],
)
def test_windows_of_a_day_end_so_long_after_it(
    declared: Stream, operator: Reach, after: timedelta
) -> None:
    assert finished_after(declared, BuildReach(operators=[operator])) == after


def test_a_build_without_sessions_of_a_process_leaves_no_accumulator() -> None:
    """Each would stay as long as the driver lives, and a refreshing stream builds each batch."""
    rows = Mock(spec=DataFrame)
    rows.schema = stream().tables[0].schema
    days = (datetime(2024, 3, 1, tzinfo=UTC), datetime(2024, 3, 2, tzinfo=UTC))
    reach = BuildReach(days)

    assert build_days_of(stream(), reach, rows) is rows

    rows.sparkSession.sparkContext.accumulator.assert_not_called()
    assert reach.measures == []
