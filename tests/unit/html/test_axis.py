"""Axes have few ticks, at values that people count in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rivermark.html.axis import bucket_of, text_of, time_axis, value_axis

START = datetime(2026, 3, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("high", "unit", "texts"),
    [
        (7, "number", ["0", "2", "4", "6", "8"]),
        (43_000, "number", ["0", "20k", "40k", "60k"]),
        (0.034, "share", ["0 %", "1 %", "2 %", "3 %", "4 %"]),
        (95, "seconds", ["0 s", "30 s", "1 min", "1.5 min", "2 min"]),
        (50_000, "seconds", ["0 s", "6 h", "12 h", "18 h"]),
        (2_523 * 86_400, "seconds", ["0 s", "1,000 d", "2,000 d", "3,000 d"]),
        (0, "number", ["0", "0.5", "1"]),
    ],
)
def test_values_end_at_a_round_one(high: float, unit: str, texts: list[str]) -> None:
    axis = value_axis(0, high, unit)  # type: ignore[arg-type]

    assert [tick.text for tick in axis.ticks] == texts
    assert axis.at(axis.low) == axis.ticks[0].at == 0
    assert axis.at(axis.high) == axis.ticks[-1].at == 1


def test_values_need_not_start_at_zero() -> None:
    assert [tick.text for tick in value_axis(-7, 16).ticks] == ["-10", "0", "10", "20"]


@pytest.mark.parametrize(
    ("span", "texts"),
    [
        (timedelta(seconds=40), ["00:00:00", "00:00:10", "00:00:20", "00:00:30", "00:00:40"]),
        (timedelta(hours=5), ["00:00", "01:00", "02:00", "03:00", "04:00", "05:00"]),
        (
            timedelta(days=2),
            ["2 Mar 00:00", "2 Mar 12:00", "3 Mar 00:00", "3 Mar 12:00", "4 Mar 00:00"],
        ),
        (timedelta(days=5), ["2 Mar", "3 Mar", "4 Mar", "5 Mar", "6 Mar", "7 Mar"]),
        (timedelta(days=400), ["Apr 2026", "Jul 2026", "Oct 2026", "Jan 2027", "Apr 2027"]),
    ],
)
def test_times_are_named_at_round_ones(span: timedelta, texts: list[str]) -> None:
    assert [tick.text for tick in time_axis(START, START + span).ticks] == texts


def test_a_bucket_is_a_span_that_people_count_in() -> None:
    assert bucket_of(timedelta(minutes=2), 90) == timedelta(seconds=2)
    assert bucket_of(timedelta(days=7), 90) == timedelta(hours=2)
    assert bucket_of(timedelta(days=3650), 100) == timedelta(seconds=3_153_600)


def test_texts_have_units() -> None:
    assert text_of(1_234, "number") == "1,234"
    assert text_of(2_500_000, "number") == "2.5M"
    assert text_of(0.1234, "share") == "12.3 %"
    assert text_of(172_800, "seconds") == "2 d"


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (922.8877522200562, 922.8877522200563),
        (0.0, 5e-324),
        (-1e308, 1e308),
        (1e308, 1e308),
        (0.0, float("inf")),
        (1e17, 1e17),
        (-3.0, -3.0),
    ],
)
def test_m040_odd_values_have_an_axis(low: float, high: float) -> None:
    """Two values a rounding apart ended the page by a ZeroDivisionError."""
    axis = value_axis(low, high)

    assert axis.low < axis.high
    assert 2 <= len(axis.ticks) <= 7
    assert 0 <= axis.at(low) <= axis.at(high) <= 1


def test_m040_times_at_the_calendars_ends_have_an_axis() -> None:
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)

    assert 2 <= len(time_axis(first, last).ticks) <= 7
