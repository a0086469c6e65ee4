"""The alerts on readings as streams and tables."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql.types import (
    DecimalType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from assets.readings.alerts.corrected import CORRECTED_FOR, CorrectedCounts
from assets.readings.alerts.jumps import SILENCE, TemperatureJumps
from assets.readings.alerts.rising import MEMORY, RisingTemperatures
from assets.readings.alerts.smoke import SmokeAlerts
from assets.readings.alerts.suites import (
    CORRECTED_COUNTS_SUITE,
    RISING_TEMPERATURES_SUITE,
    SMOKE_ALERTS_SUITE,
    TEMPERATURE_JUMPS_SUITE,
)
from assets.readings.controls import DEGREES
from assets.readings.ingest import (
    ALERTS,
    FIRST_DAY,
    OWNERS,
    SENSOR_READINGS,
    SMOKE_LEVELS,
    THRESHOLDS,
)
from assets.readings.sensors import TEMPERATURE
from rivermark.model.stream import AnyStream, Output, Stream
from rivermark.model.table import Daily, Table
from rivermark.process.spark import main_rows, run_process, side_rows

SENSOR: Final = StructField("sensor_id", StringType(), True)
EVENT_TIME: Final = StructField("event_time", TimestampType(), True)

JUMPS_SHOWN: Final = (
    "Readings that differ from their sensor's previous one by more than its threshold, with the "
    "threshold and its version (degrees Fahrenheit)."
)

TEMPERATURE_JUMPS: Final = Stream(
    name="readings/temperature_jumps",
    reads=(SENSOR_READINGS, THRESHOLDS),
    build=run_process(TemperatureJumps, inputs=("readings", "thresholds")),
    writes=Table(
        name="readings/temperature_jumps",
        schema=StructType(
            [
                SENSOR,
                EVENT_TIME,
                StructField("temperature", TEMPERATURE, True),
                StructField("before", TEMPERATURE, True),
                StructField("difference", TEMPERATURE, True),
                StructField("threshold", DEGREES, True),
                StructField("rule_version", LongType(), True),
            ]
        ),
        description=JUMPS_SHOWN,
        event_time="event_time",
        keys=("sensor_id", "event_time"),
        days=Daily(column="event_time", start=FIRST_DAY),
    ),
    description=JUMPS_SHOWN,
    group=ALERTS,
    margin=SILENCE,
    suite=TEMPERATURE_JUMPS_SUITE,
    owners=OWNERS,
)

RISES_SHOWN: Final = (
    "Sensors whose temperature did not fall for a second after it began to rise (Fahrenheit)."
)

RISING_TEMPERATURES: Final = Stream(
    name="readings/rising_temperatures",
    reads=(SENSOR_READINGS,),
    build=run_process(RisingTemperatures),
    writes=Table(
        name="readings/rising_temperatures",
        schema=StructType(
            [
                SENSOR,
                EVENT_TIME,
                StructField("since", TimestampType(), True),
                StructField("from_temperature", TEMPERATURE, True),
                StructField("temperature", TEMPERATURE, True),
            ]
        ),
        description=RISES_SHOWN,
        event_time="event_time",
        keys=("sensor_id", "event_time"),
        days=Daily(column="event_time", start=FIRST_DAY),
    ),
    description=RISES_SHOWN,
    group=ALERTS,
    margin=MEMORY,
    suite=RISING_TEMPERATURES_SUITE,
    owners=OWNERS,
)

SMOKE_SHOWN: Final = (
    "Readings above 100 degrees Fahrenheit while the smoke level of their time was high."
)

SMOKE_ALERTS: Final = Stream(
    name="readings/smoke_alerts",
    reads=(SENSOR_READINGS, SMOKE_LEVELS),
    build=run_process(SmokeAlerts, inputs=("readings", "levels")),
    writes=Table(
        name="readings/smoke_alerts",
        schema=StructType(
            [
                SENSOR,
                EVENT_TIME,
                StructField("temperature", TEMPERATURE, True),
                StructField("level_time", TimestampType(), True),
            ]
        ),
        description=SMOKE_SHOWN,
        event_time="event_time",
        keys=("sensor_id", "event_time"),
        days=Daily(column="event_time", start=FIRST_DAY),
    ),
    description=SMOKE_SHOWN,
    group=ALERTS,
    margin=timedelta(minutes=1),
    suite=SMOKE_ALERTS_SUITE,
    owners=OWNERS,
)

COUNTS_SHOWN: Final = (
    "Readings per sensor and ten seconds a second after they ended, and each correction since: "
    "the highest revision counts."
)
TOO_LATE_SHOWN: Final = "Admitted readings that came too late to correct their ten seconds."

IMPATIENCE: Final = timedelta(seconds=1)
"""How long a count waits for readings. The door waits longer: what it admits behind this watermark
comes as a correction."""

CORRECTED_COUNTS: Final = Stream(
    name="readings/corrected_counts",
    reads=(SENSOR_READINGS,),
    build=run_process(CorrectedCounts),
    writes=(
        Output(
            Table(
                name="readings/corrected_counts",
                schema=StructType(
                    [
                        SENSOR,
                        StructField("window_start", TimestampType(), True),
                        StructField("window_end", TimestampType(), True),
                        StructField("readings", LongType(), True),
                        StructField("total", DecimalType(18, 4), True),
                        StructField("mark", StringType(), True),
                        StructField("revision", LongType(), True),
                    ]
                ),
                description=COUNTS_SHOWN,
                event_time="window_end",
                keys=("sensor_id", "window_end", "revision"),
                days=Daily(column="window_start", start=FIRST_DAY),
            ),
            main_rows,
        ),
        Output(
            Table(
                name="readings/readings_too_late",
                schema=StructType(
                    [
                        SENSOR,
                        EVENT_TIME,
                        StructField("temperature", TEMPERATURE, True),
                        StructField("sequence", LongType(), True),
                    ]
                ),
                description=TOO_LATE_SHOWN,
                event_time="event_time",
                keys=("sensor_id", "sequence"),
                days=Daily(column="event_time", start=FIRST_DAY),
            ),
            side_rows("readings_too_late"),
        ),
    ),
    description="Readings per sensor and ten seconds with corrections; and what missed those.",
    group=ALERTS,
    lateness=IMPATIENCE,
    margin=CORRECTED_FOR + timedelta(seconds=10),
    suite=CORRECTED_COUNTS_SUITE,
    owners=OWNERS,
)

ALERT_STREAMS: Final[tuple[AnyStream, ...]] = (
    THRESHOLDS,
    SMOKE_LEVELS,
    TEMPERATURE_JUMPS,
    RISING_TEMPERATURES,
    SMOKE_ALERTS,
    CORRECTED_COUNTS,
)
