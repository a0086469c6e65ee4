"""What controls the alerts on readings: thresholds and smoke levels.

Both are sent again and again, changed or not: a reader that starts at any time soon knows them, and
their silence never holds back the watermark of the streams that read them.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Final

from rivermark import Contract, Field, Rule
from rivermark.process import ColumnType

DEGREES: Final = "decimal(9,4)"
Degrees = Annotated[Decimal, ColumnType(DEGREES)]

THRESHOLD: Final = Contract(
    fields=(
        Field("sensor_id", "string", required=True, description="The sensor; * for all others."),
        Field("event_time", "timestamp", required=True, description="From when on (UTC)."),
        Field(
            "degrees",
            DEGREES,
            required=True,
            description="More than so many degrees Fahrenheit are a jump; 0 for none.",
        ),
        Field("version", "long", required=True, description="Version of the thresholds."),
    ),
    event_time="event_time",
    keys=("sensor_id", "event_time"),
    rules=(
        Rule(
            "negative_threshold",
            "degrees < 0",
            "quarantine",
            "Every reading would be a jump.",
        ),
    ),
)

SMOKE_LEVEL: Final = Contract(
    fields=(
        Field("event_time", "timestamp", required=True, description="From when on (UTC)."),
        Field("level", "string", required=True, description="High or Low."),
    ),
    event_time="event_time",
    keys=("event_time",),
    rules=(
        Rule(
            "unknown_level",
            "level NOT IN ('High', 'Low')",
            "quarantine",
            "A level is High or Low.",
        ),
    ),
)
