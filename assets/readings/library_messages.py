"""What a message of a sensor node in the library is, in the decimal commas of its makers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from rivermark import Contract, Field, Rule, readers

GROUPED_INTEGER: Final = readers.sql(
    "replace(text, '\N{NO-BREAK SPACE}', '')", readers.integer(decimal_comma=True)
)
"""Reads whole numbers whose thousands may be set apart by a no-break space, as in 1 000."""


def _measured(name: str, description: str) -> Field:
    read = readers.decimal(8, 2, decimal_comma=True)
    return Field(name, "decimal(8,2)", read=read, description=description)


HIGHEST_SEQUENCE: Final = 10_000_000
"""Nineteen years of a message a minute."""

LIBRARY_COLUMNS: Final = (
    "arrival_ms",
    "node",
    "sequence",
    "internal_temperature",
    "voltage",
    "humidity",
    "temperature",
    "par",
    "tsr",
)

LIBRARY_MESSAGE: Final = Contract(
    fields=(
        Field(
            "event_time",
            "timestamp",
            ("arrival_ms",),
            required=True,
            read=readers.epoch_millis(),
            description="When it reached the base station (UTC); nothing tells when it was sent.",
        ),
        Field("node", "int", required=True, description="The node that sent it."),
        Field(
            "sequence",
            "int",
            required=True,
            read=GROUPED_INTEGER,
            description="The node's count of its messages; all nodes count in step.",
        ),
        _measured("temperature", "Degrees Celsius."),
        _measured("internal_temperature", "Degrees Celsius, of the node itself."),
        _measured("humidity", "Per cent."),
        _measured("voltage", "Volts of the battery."),
        Field("par", "int", read=GROUPED_INTEGER, description="Light, raw."),
        Field("tsr", "int", read=GROUPED_INTEGER, description="Light, raw."),
    ),
    event_time="event_time",
    # The first node was switched on that year: an earlier time is a clock that was not set.
    earliest=datetime(2006, 1, 1, tzinfo=UTC),
    keys=("node", "sequence"),
    rules=(
        Rule(
            "sequence_out_of_range",
            f"sequence NOT BETWEEN 0 AND {HIGHEST_SEQUENCE}",
            "quarantine",
            f"The count lies below zero or above {HIGHEST_SEQUENCE:,}; rounds are made from it.",
        ),
    ),
)
