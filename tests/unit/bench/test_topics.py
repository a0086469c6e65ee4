"""What is sent to topics, what should come of it, and what is a difference."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa

from bench.topic_load import LATENESS_SECONDS, MICROS, WINDOW_SECONDS, Phase, fare_line, windows_of
from bench.topics import Rows, difference

PHASES = (
    Phase(began=1_704_067_201_300_000, rate=30, events=300),
    Phase(began=1_704_067_215_000_000, rate=70, events=1_000, first=300),
)
CLOSED = PHASES[-1].end - LATENESS_SECONDS * MICROS - MICROS


def by_hand() -> list[tuple[int, int, int, int]]:
    """The windows, from the lines themselves."""
    tips: Counter[tuple[int, int]] = Counter()
    fares: Counter[tuple[int, int]] = Counter()
    for phase in PHASES:
        for n in range(phase.events):
            due = phase.began + n * MICROS // phase.rate
            fare = json.loads(fare_line(phase.first + n, due))
            end = (due // MICROS // WINDOW_SECONDS + 1) * WINDOW_SECONDS
            tips[end * 1000, fare["driver_id"]] += fare["tip"]
            fares[end * 1000, fare["driver_id"]] += 1
    return sorted((*k, tips[k], fares[k]) for k in fares if k[0] * 1000 <= CLOSED)


def rows(*parts: dict[str, list[Any]]) -> Rows:
    tables = [(0.0, pa.table(part)) for part in parts]
    return Rows(list, list(parts[0]), tables)


def compared(rides: list[int], windows: list[tuple[int, int, int, int]]) -> str:
    """How these rows and windows differ from what the phases should give."""
    columns = [list(column) for column in zip(*windows, strict=True)]
    tips = dict(zip(("window_end_ms", "driver_id", "tips", "fares"), columns, strict=True))
    fares = rows({"ride_id": rides[:9]}, {"ride_id": rides[9:]})
    return difference(PHASES, fares, rows(tips))


def test_a_line_has_the_time_at_which_it_is_due() -> None:
    assert json.loads(fare_line(205, 1_704_067_201_000_030)) == {
        "ride_id": 205,
        "taxi_id": 6,
        "driver_id": 6,
        "event_time": "2024-01-01T00:00:01.000030Z",
        "payment_type": "CARD",
        "tip": 2,
        "tolls": 0,
        "total_fare": 11,
    }


def test_a_phase_ends_when_the_next_event_would_be_due() -> None:
    assert PHASES[0].end == PHASES[0].began + 10 * MICROS
    assert PHASES[0].due()[-1] == PHASES[0].began + 299 * MICROS // 30
    assert replace(PHASES[0], rate=60).end == PHASES[0].began + 5 * MICROS


def test_windows_of_the_schedule_are_those_of_the_lines() -> None:
    expected = [(*key, *values) for key, values in windows_of(PHASES, CLOSED).items()]
    assert sorted(expected) == by_hand()


def test_rows_that_are_missing_or_there_twice_are_a_difference() -> None:
    windows, rides = by_hand(), [*range(1_300)]

    assert compared([*reversed(rides)], windows) == ""
    assert compared(rides[1:], windows) == "1 of 1,300 rows are missing, 0 twice"
    assert compared([*rides, 7], windows) == "0 of 1,300 rows are missing, 1 twice"


def test_another_window_is_a_difference_but_not_one_that_is_still_open() -> None:
    windows, rides = by_hand(), [*range(1_300)]
    still_open = (PHASES[-1].end // 1000 + 1, 1, 1, 1)
    (end, driver, tips, fares), *others = windows

    assert compared(rides, [*windows, still_open]) == ""
    assert "windows are not" in compared(rides, others)
    assert "windows are not" in compared(rides, [(end, driver, tips + 1, fares), *others])
