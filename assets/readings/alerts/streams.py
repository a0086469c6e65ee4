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
from rivermark import AnyStream, Output, Suite, Table, expect
from rivermark.process.spark import main_rows, run_process, side_rows

TEMPERATURE_JUMPS: Final = ALERTS.stream(
    reads=(SENSOR_READINGS, THRESHOLDS),
    build=run_process(TemperatureJumps, inputs=("readings", "thresholds")),
    writes=Table.of(
        Jump,
        name="readings/temperature_jumps",
        description=(
            "Readings that differ from their sensor's previous one by more than its threshold, "
            "with the threshold and its version (degrees Fahrenheit)."
        ),
        event_time="event_time",
        keys=("sensor_id", "event_time"),
        days=ALERTS.days("event_time"),
        comments={
            "before": "The sensor's reading before it (degrees Fahrenheit).",
            "difference": "How far the two readings lie apart (degrees Fahrenheit).",
            "threshold": "The threshold that the difference exceeds (degrees Fahrenheit).",
            "rule_version": "Version of that threshold.",
        },
    ),
    margin=SILENCE,
    suite=Suite(
        expectations=(
            expect.no_rows_where(
                "difference <= threshold", name="a jump is more than its threshold"
            ),
            expect.no_rows_where(
                "difference <> abs(temperature - before)",
                name="the difference is that of its readings",
            ),
            expect.not_null("rule_version"),
        ),
        may_be_empty=True,
    ),
)

RISING_TEMPERATURES: Final = ALERTS.stream(
    reads=(SENSOR_READINGS,),
    build=run_process(RisingTemperatures),
    writes=Table.of(
        Rising,
        name="readings/rising_temperatures",
        description=(
            "Sensors whose temperature did not fall for a second after it began to rise "
            "(Fahrenheit)."
        ),
        event_time="event_time",
        keys=("sensor_id", "event_time"),
        days=ALERTS.days("event_time"),
        comments={
            "event_time": "When the rise had lasted a second (UTC).",
            "since": "When the temperature began to rise (UTC).",
            "from_temperature": "The temperature before the rise (degrees Fahrenheit).",
            "temperature": "The last temperature of that second (degrees Fahrenheit).",
        },
    ),
    margin=MEMORY,
    suite=Suite(
        expectations=(
            expect.unique(("sensor_id", "event_time")),
            expect.pair_ordered("since", "event_time", strictly=True),
            expect.pair_ordered("from_temperature", "temperature", strictly=True),
        ),
        may_be_empty=True,
    ),
)

SMOKE_ALERTS: Final = ALERTS.stream(
    reads=(SENSOR_READINGS, SMOKE_LEVELS),
    build=run_process(SmokeAlerts, inputs=("readings", "levels")),
    writes=Table.of(
        SmokeAlert,
        name="readings/smoke_alerts",
        description=(
            "Readings above 100 degrees Fahrenheit while the smoke level of their time was high."
        ),
        event_time="event_time",
        keys=("sensor_id", "event_time"),
        days=ALERTS.days("event_time"),
        comments={"level_time": "From when on the smoke level was high (UTC)."},
    ),
    margin=timedelta(minutes=1),
    suite=Suite(
        expectations=(
            expect.unique(("sensor_id", "event_time")),
            expect.between("temperature", 100),
            expect.pair_ordered("level_time", "event_time"),
        ),
        may_be_empty=True,
    ),
)

IMPATIENCE: Final = timedelta(seconds=1)
"""How long a count waits for readings. Admission waits longer: what it admits behind this watermark
comes as a correction."""

CORRECTED_COUNTS: Final = ALERTS.stream(
    reads=(SENSOR_READINGS,),
    build=run_process(CorrectedCounts),
    writes=(
        Output(
            Table.of(
                CorrectedCount,
                name="readings/corrected_counts",
                description=(
                    "Readings per sensor and ten seconds a second after they ended, and each "
                    "correction since: the highest revision counts."
                ),
                event_time="window_end",
                keys=("sensor_id", "window_end", "revision"),
                days=ALERTS.days("window_start"),
                comments={
                    "readings": "How many readings, repeats left out.",
                    "total": "Their sum (degrees Fahrenheit).",
                    "mark": "first, or update where the count is a correction.",
                    "revision": "Which count of this sensor and window it is, from 1.",
                },
            ),
            main_rows,
        ),
        Output(
            Table.of(
                Reading,
                name="readings/readings_too_late",
                description="Admitted readings that came too late to correct their ten seconds.",
                event_time="event_time",
                keys=("sensor_id", "sequence"),
                days=ALERTS.days("event_time"),
            ),
            side_rows("readings_too_late"),
        ),
    ),
    description="Readings per sensor and ten seconds with corrections; and what missed those.",
    lateness=IMPATIENCE,
    margin=CORRECTED_FOR + timedelta(seconds=10),
    suite=Suite(
        expectations=(
            expect.unique(("sensor_id", "window_end", "revision")),
            ORDERED_WINDOW,
            expect.between("readings", 1),
            expect.in_set("mark", ("first", "update")),
            expect.no_rows_where(
                "(mark = 'first') <> (revision = 1)", name="the first revision is marked so"
            ),
        ),
        may_be_empty=True,
    ),
)

ALERT_STREAMS: Final[tuple[AnyStream, ...]] = (
    THRESHOLDS,
    SMOKE_LEVELS,
    TEMPERATURE_JUMPS,
    RISING_TEMPERATURES,
    SMOKE_ALERTS,
    CORRECTED_COUNTS,
)
