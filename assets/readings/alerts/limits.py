"""Readings beyond limits: too hot, or freezing. Nothing is remembered from one to the next.

Limits are a lookup: what lands in its folder counts from its own time on, without a restart. Where
readings come from a topic, the alerts go to one too, and wait for no batch there.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.readings.controls import DEGREES
from assets.readings.ingest import ALERTS, BROKERS, SENSOR_READINGS
from assets.readings.sensors import TEMPERATURE
from rivermark import AnyStream, Contract, Field, Output, columns, expect
from rivermark.operators import join_as_of
from rivermark.sinks import RealTimeSink
from rivermark.sources import FileSource

HOT: Final = "hot"
FREEZING: Final = "freezing"

LIMIT: Final = Contract(
    fields=(
        Field("rule", "string", required=True, description="hot, or freezing."),
        Field("since", "timestamp", required=True, description="From when on (UTC)."),
        Field(
            "degrees",
            DEGREES,
            description="Degrees Fahrenheit above which it is hot, or below which it freezes; "
            "empty: no limit.",
        ),
    ),
    event_time="since",
)

BEYOND_LIMITS: Final = ALERTS.table(
    "readings/beyond_limits",
    columns(
        f"sensor_id string, sequence long, event_time timestamp, temperature {TEMPERATURE}, "
        f"rule string, degrees {DEGREES}"
    ),
    description=("Readings above or below the limit of their time, with it (degrees Fahrenheit)."),
    keys=("sensor_id", "sequence", "rule"),
)


def beyond_limits(readings: DataFrame, limits: DataFrame) -> DataFrame:
    """Each reading that is beyond the limit of a rule, as it was at the reading's time."""
    rules = F.explode(F.array(F.lit(HOT), F.lit(FREEZING))).alias("rule")
    compared = readings.select("sensor_id", "sequence", "event_time", "temperature", rules)
    limited = join_as_of(compared, limits, ("rule",), at="event_time", since="since", how="inner")
    hot = (F.col("rule") == HOT) & (F.col("temperature") > F.col("degrees"))
    freezing = (F.col("rule") == FREEZING) & (F.col("temperature") < F.col("degrees"))
    return limited.where(hot | freezing)


def limit_streams() -> tuple[AnyStream, ...]:
    """The limits, and the alerts: where readings come from a topic, which they need."""
    limits = ALERTS.ingest(
        "readings/limits",
        source=FileSource(folder="readings/limits", pattern="*.json"),
        contract=LIMIT,
        kind="lookup",
        keys="rule",
        description="Degrees Fahrenheit beyond which it is hot, or freezes; from their time on.",
        expect=[
            expect.in_set("rule", (HOT, FREEZING), severity="warning"),
        ],
    )
    alerts = ALERTS.stream(
        reads=SENSOR_READINGS,
        static=(limits.versions,),
        build=beyond_limits,
        writes=(
            Output(
                BEYOND_LIMITS,
                sinks=(RealTimeSink(topic="readings.alerts", brokers=f"${BROKERS}"),),
            ),
        ),
        expect=[
            expect.no_rows_where(
                "CASE WHEN rule = 'hot' THEN temperature <= degrees "
                "ELSE temperature >= degrees END",
                name="a reading is beyond its limit",
            ),
        ],
    )
    return limits, alerts
