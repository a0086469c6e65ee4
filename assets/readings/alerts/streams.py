"""The alerts on readings as streams and tables."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from assets.readings.alerts.corrected import CORRECTED_FOR, CorrectedCount, CorrectedCounts
from assets.readings.alerts.jumps import SILENCE, Jump, TemperatureJumps
from assets.readings.alerts.reading import Reading
from assets.readings.alerts.rising import MEMORY, Rising, RisingTemperatures
from assets.readings.alerts.smoke import SmokeAlert, SmokeAlerts
from assets.readings.expected import ORDERED_WINDOW
from assets.readings.ingest import ALERTS, SENSOR_READINGS, SMOKE_LEVELS, THRESHOLDS
from rivermark import AnyStream, Output, expect
from rivermark.process.spark import main_rows, run_process, side_rows

TEMPERATURE_JUMPS: Final = ALERTS.stream(
    "readings/temperature_jumps",
    Jump,
    reads=(SENSOR_READINGS, THRESHOLDS),
    build=run_process(TemperatureJumps, inputs=("readings", "thresholds")),
    description=(
        "Readings that differ from their sensor's previous one by more than its threshold, "
        "with the threshold and its version (degrees Fahrenheit)."
    ),
    keys=("sensor_id", "event_time"),
    margin=SILENCE,
    expect=[
        expect.no_rows_where("difference <= threshold", name="a jump is more than its threshold"),
        expect.no_rows_where(
            "difference <> abs(temperature - before)",
            name="the difference is that of its readings",
        ),
        expect.not_null("rule_version"),
    ],
)

RISING_TEMPERATURES: Final = ALERTS.stream(
    "readings/rising_temperatures",
    Rising,
    reads=SENSOR_READINGS,
    build=run_process(RisingTemperatures),
    keys=("sensor_id", "event_time"),
    margin=MEMORY,
    expect=[
        expect.unique(("sensor_id", "event_time")),
        expect.pair_ordered("since", "event_time", strictly=True),
        expect.pair_ordered("from_temperature", "temperature", strictly=True),
    ],
)

SMOKE_ALERTS: Final = ALERTS.stream(
    "readings/smoke_alerts",
    SmokeAlert,
    reads=(SENSOR_READINGS, SMOKE_LEVELS),
    build=run_process(SmokeAlerts, inputs=("readings", "levels")),
    keys=("sensor_id", "event_time"),
    margin=timedelta(minutes=1),
    expect=[
        expect.unique(("sensor_id", "event_time")),
        expect.between("temperature", 100),
        expect.pair_ordered("level_time", "event_time"),
    ],
)

IMPATIENCE: Final = timedelta(seconds=1)
"""How long a count waits for readings. Admission waits longer: what it admits behind this watermark
comes as a correction."""

CORRECTED_COUNTS: Final = ALERTS.stream(
    reads=SENSOR_READINGS,
    build=run_process(CorrectedCounts),
    writes=(
        Output(
            ALERTS.table(
                "readings/corrected_counts",
                CorrectedCount,
                description=(
                    "Readings per sensor and ten seconds a second after they ended, and each "
                    "correction since: the highest revision counts."
                ),
                keys=("sensor_id", "window_end", "revision"),
            ),
            main_rows,
        ),
        Output(
            ALERTS.table(
                "readings/readings_too_late",
                Reading,
                description="Admitted readings that came too late to correct their ten seconds.",
                keys=("sensor_id", "sequence"),
            ),
            side_rows("readings_too_late"),
        ),
    ),
    description="Readings per sensor and ten seconds with corrections; and what missed those.",
    lateness=IMPATIENCE,
    margin=CORRECTED_FOR + timedelta(seconds=10),
    expect=[
        expect.unique(("sensor_id", "window_end", "revision")),
        ORDERED_WINDOW,
        expect.between("readings", 1),
        expect.in_set("mark", ("first", "update")),
        expect.no_rows_where(
            "(mark = 'first') <> (revision = 1)", name="the first revision is marked so"
        ),
    ],
)

ALERT_STREAMS: Final[tuple[AnyStream, ...]] = (
    THRESHOLDS,
    SMOKE_LEVELS,
    TEMPERATURE_JUMPS,
    RISING_TEMPERATURES,
    SMOKE_ALERTS,
    CORRECTED_COUNTS,
)
