"""What a line of a recorded temperature series is: a time and a value, and no sensor."""

from __future__ import annotations

from typing import Final

from assets.readings.sensors import BELOW_ABSOLUTE_ZERO
from rivermark import Contract, Field

RECORDED: Final = "decimal(12,6)"

RECORDED_TEMPERATURE: Final = Contract(
    fields=(
        Field(
            "event_time",
            "timestamp",
            ("timestamp",),
            required=True,
            description="When it was read; the files name no zone, their clock is taken as UTC.",
        ),
        Field(
            "temperature",
            RECORDED,
            ("value",),
            required=True,
            description="Degrees Fahrenheit, by the values; rounded to a millionth.",
        ),
    ),
    event_time="event_time",
    rules=(BELOW_ABSOLUTE_ZERO,),
)
"""No keys: a logger that set its clock back gives two readings of one time, and both are real."""
