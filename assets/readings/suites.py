"""What is expected of the tables that are made from readings."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Final

from rivermark.model import expectations as expect
from rivermark.model.rule import Expectation
from rivermark.model.suite import Suite
from rivermark.model.table import Daily
from rivermark.quality.time_expectations import no_overlap, usual_rows

ORDERED_WINDOW: Final = expect.pair_ordered("window_start", "window_end", strictly=True)
ORDERED_EXTREMES: Final = expect.pair_ordered("minimum", "maximum")

COLDEST: Final = -60
HOTTEST: Final = 250
"""Degrees Fahrenheit beyond which no sensor here has been; the machine's reached 108."""


def of_the_archive(column: str) -> Expectation:
    """A day's usual number of rows is told and no more: in the archive sensors come and go.

    One that reads every five minutes joins some that read every hour, and ends before them: by the
    profile, eight weeks of days around each such change are unusual.
    """
    return usual_rows(Daily(column=column, start=date(2013, 1, 1)), severity="info")


SENSOR_READINGS_SUITE: Final = Suite(
    name="readings/sensor_readings",
    expectations=(
        expect.between("sequence", 0),
        expect.between("temperature", Decimal("-459.67")),
        expect.between("temperature", COLDEST, HOTTEST, severity="warning"),
        expect.matches_regex("sensor_id", ".+"),
    ),
    may_be_empty=True,
)

TEMPERATURES_SUITE: Final = Suite(
    name="readings/temperatures",
    expectations=(
        expect.between("temperature", COLDEST, HOTTEST, severity="warning"),
        of_the_archive("event_time"),
    ),
    may_be_empty=True,
)

LIBRARY_SUITE: Final = Suite(
    name="readings/library",
    expectations=(expect.between("node", 1), expect.between("sequence", 0)),
    may_be_empty=True,
)

ROOM_SUITE: Final = Suite(
    name="readings/occupancy",
    expectations=(
        expect.between("temperature", -10, 50, severity="warning"),
        expect.between("humidity", 0, 100, allow_null_share=0.01),
        expect.between("light", 0, allow_null_share=0.01),
        expect.between("co2", 0, allow_null_share=0.01),
        expect.between("occupancy", 0, 1, allow_null_share=0.01),
    ),
    may_be_empty=True,
)

AVERAGES_5S_SUITE: Final = Suite(
    name="readings/averages_5s",
    expectations=(
        expect.unique(("sensor_id", "window_end")),
        ORDERED_WINDOW,
        no_overlap("sensor_id"),
        expect.between("celsius", -60, 120, severity="warning"),
        expect.between("readings", 1),
    ),
)

MINUTE_EXTREMES_SUITE: Final = Suite(
    name="readings/minute_extremes",
    expectations=(
        expect.unique(("sensor_id", "window_end")),
        ORDERED_WINDOW,
        no_overlap("sensor_id"),
        ORDERED_EXTREMES,
        expect.between("readings", 1),
    ),
)

HOURLY_SUITE: Final = Suite(
    name="readings/hourly",
    expectations=(
        expect.unique(("sensor_id", "window_end")),
        expect.matches_regex("sensor_id", ".+"),
        ORDERED_WINDOW,
        no_overlap("sensor_id"),
        ORDERED_EXTREMES,
        expect.pair_ordered("minimum", "average"),
        expect.pair_ordered("average", "maximum"),
        expect.between("readings", 1),
        of_the_archive("window_start"),
    ),
)

GAPS_SUITE: Final = Suite(
    name="readings/gaps",
    expectations=(
        expect.unique(("sensor_id", "first_after")),
        expect.pair_ordered("last_before", "first_after", strictly=True),
        expect.between("missing", 1),
        expect.between("missing", None, 24, severity="info"),
    ),
    may_be_empty=True,
)

LIBRARY_HOURS_SUITE: Final = Suite(
    name="readings/library_hours",
    expectations=(
        expect.unique(("node", "window_end")),
        ORDERED_WINDOW,
        expect.no_rows_where(
            "expected <> used + missing OR duplicates < 0", name="every message is accounted for"
        ),
        expect.no_rows_where(
            "missing > 0.25 * expected AND expected >= 30",
            name="no node loses a quarter of an hour",
            severity="warning",
        ),
    ),
    # The library's files may not be passed on: nobody has them who did not fetch them.
    may_be_empty=True,
)

THRESHOLDS_SUITE: Final = Suite(
    name="readings/thresholds",
    expectations=(expect.between("degrees", 0), expect.between("version", 0)),
    may_be_empty=True,
)

SMOKE_LEVELS_SUITE: Final = Suite(
    name="readings/smoke_levels",
    expectations=(expect.in_set("level", ("High", "Low"), severity="warning"),),
    may_be_empty=True,
)
