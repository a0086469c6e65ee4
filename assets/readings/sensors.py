"""What a reading of the live stream is: a sensor's temperature at a moment.

Temperatures are exact decimals: sums of them are the same in whatever order they are added.
Readings may be lost, come twice or out of order.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Final

from rivermark import Contract, Field, Rule
from rivermark.process import ColumnType

TEMPERATURE: Final = "decimal(9,4)"
Temperature = Annotated[Decimal, ColumnType(TEMPERATURE)]
"""Degrees Fahrenheit."""

LONGEST_JUMP: Final = timedelta(hours=12)
"""How far one file may run ahead: one sensor with a wrong date must not make all others late."""

BELOW_ABSOLUTE_ZERO: Final = Rule(
    "below_absolute_zero",
    "temperature < -459.67",
    "quarantine",
    "Nothing is colder than -459.67 degrees Fahrenheit.",
)

SENSOR_READING: Final = Contract(
    fields=(
        Field("sensor_id", "string", required=True, description="The sensor."),
        Field("event_time", "timestamp", required=True, description="When it read (UTC)."),
        Field("temperature", TEMPERATURE, required=True, description="Degrees Fahrenheit."),
        Field(
            "sequence",
            "long",
            required=True,
            description="The sensor's own count of its readings: a gap is a lost one.",
        ),
    ),
    event_time="event_time",
    keys=("sensor_id", "sequence"),
    rules=(BELOW_ABSOLUTE_ZERO,),
    max_jump=LONGEST_JUMP,
)
