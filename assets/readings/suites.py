"""What is expected of the tables that are made from readings."""

from __future__ import annotations

from typing import Final

from rivermark.quality import expectations as expect
from rivermark.quality.suite import Suite

ORDERED_WINDOW: Final = expect.pair_ordered("window_start", "window_end", strictly=True)
ORDERED_EXTREMES: Final = expect.pair_ordered("minimum", "maximum")

AVERAGES_5S_SUITE: Final = Suite(
    name="readings/averages_5s",
    expectations=(
        expect.unique(("sensor_id", "window_end")),
        ORDERED_WINDOW,
        expect.between("celsius", -60, 120, severity="warning"),
        expect.between("readings", 1),
    ),
)

MINUTE_EXTREMES_SUITE: Final = Suite(
    name="readings/minute_extremes",
    expectations=(
        expect.unique(("sensor_id", "window_end")),
        ORDERED_WINDOW,
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
        ORDERED_EXTREMES,
        expect.pair_ordered("minimum", "average"),
        expect.pair_ordered("average", "maximum"),
        expect.between("readings", 1),
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
