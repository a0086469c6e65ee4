"""What a person looks at first of the tables of readings: temperatures, their gaps and alerts."""

from __future__ import annotations

from typing import Final

from assets.readings.alerts.streams import SMOKE_ALERTS, TEMPERATURE_JUMPS
from assets.readings.averages import AVERAGES_5S
from assets.readings.gaps import GAPS
from assets.readings.hourly import HOURLY
from rivermark import Marks, Plot

READING_PLOTS: Final = (
    Plot(
        title="Recorded temperatures",
        table=HOURLY.tables[0],
        x="window_start",
        y="average",
        kind="line",
        combine="mean",
        by="sensor_id",
        unit="°F",
        marks=(Marks(name="gap", table=GAPS.tables[0], start="last_before", end="first_after"),),
    ),
    Plot(
        title="Temperatures of sensors, and alerts",
        table=AVERAGES_5S.tables[0],
        x="window_start",
        y="celsius",
        kind="line",
        combine="mean",
        by="sensor_id",
        unit="°C",
        marks=(
            Marks(name="smoke alert", table=SMOKE_ALERTS.tables[0], start="event_time"),
            Marks(name="jump", table=TEMPERATURE_JUMPS.tables[0], start="event_time"),
        ),
    ),
)
