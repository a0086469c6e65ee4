"""What a message of a sensor node in the library is, in the decimal commas of its makers."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, IntegerType, TimestampType

from rivermark.model.contract import Contract, Field
from rivermark.model.field_readers import Reader, decimal, epoch_millis, integer

HUNDREDTHS: Final = DecimalType(8, 2)


def grouped_integer() -> Reader:
    """Whole numbers whose thousands may be set apart by a no-break space, as in 1 000."""
    read = integer()

    def without_marks(text: Column) -> Column:
        return read(F.replace(text, F.lit("\N{NO-BREAK SPACE}"), F.lit("")))

    return without_marks


def _measured(name: str, description: str) -> Field:
    return Field(name, HUNDREDTHS, read=decimal(8, 2, decimal_comma=True), description=description)


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
            TimestampType(),
            ("arrival_ms",),
            required=True,
            read=epoch_millis(),
            description="When it reached the base station (UTC); nothing tells when it was sent.",
        ),
        Field("node", IntegerType(), required=True, description="The node that sent it."),
        Field(
            "sequence",
            IntegerType(),
            required=True,
            read=grouped_integer(),
            description="The node's count of its messages; all nodes count in step.",
        ),
        _measured("temperature", "Degrees Celsius."),
        _measured("internal_temperature", "Degrees Celsius, of the node itself."),
        _measured("humidity", "Per cent."),
        _measured("voltage", "Volts of the battery."),
        Field("par", IntegerType(), read=grouped_integer(), description="Light, raw."),
        Field("tsr", IntegerType(), read=grouped_integer(), description="Light, raw."),
    ),
    event_time="event_time",
    keys=("node", "sequence"),
)
