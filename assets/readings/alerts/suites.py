"""What is expected of the alerts on readings."""

from __future__ import annotations

from typing import Final

from rivermark.model import expectations as expect
from rivermark.model.suite import Suite

TEMPERATURE_JUMPS_SUITE: Final = Suite(
    name="readings/temperature_jumps",
    expectations=(
        expect.no_rows_where("difference <= threshold", name="a jump is more than its threshold"),
        expect.no_rows_where(
            "difference <> abs(temperature - before)", name="the difference is that of its readings"
        ),
        expect.not_null("rule_version"),
    ),
    may_be_empty=True,
)

RISING_TEMPERATURES_SUITE: Final = Suite(
    name="readings/rising_temperatures",
    expectations=(
        expect.unique(("sensor_id", "event_time")),
        expect.pair_ordered("since", "event_time", strictly=True),
        expect.pair_ordered("from_temperature", "temperature", strictly=True),
    ),
    may_be_empty=True,
)

SMOKE_ALERTS_SUITE: Final = Suite(
    name="readings/smoke_alerts",
    expectations=(
        expect.unique(("sensor_id", "event_time")),
        expect.between("temperature", 100),
        expect.pair_ordered("level_time", "event_time"),
    ),
    may_be_empty=True,
)

CORRECTED_COUNTS_SUITE: Final = Suite(
    name="readings/corrected_counts",
    expectations=(
        expect.unique(("sensor_id", "window_end", "revision")),
        expect.pair_ordered("window_start", "window_end", strictly=True),
        expect.between("readings", 1),
        expect.in_set("mark", ("first", "update")),
        expect.no_rows_where(
            "(mark = 'first') <> (revision = 1)", name="the first revision is marked so"
        ),
    ),
    may_be_empty=True,
)
