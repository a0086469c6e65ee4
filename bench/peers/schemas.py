"""Columns of the measured inputs and outputs as Spark and Delta tables declare them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

TYPES: Final[dict[str, DataType]] = {
    "BIGINT": LongType(),
    "BOOLEAN": BooleanType(),
    "DOUBLE": DoubleType(),
    "INT": IntegerType(),
    "STRING": StringType(),
}


def table_schema(columns: Iterable[tuple[str, str]], *, event_time: bool = False) -> StructType:
    """The columns, and behind them the event time as a timestamp where the table has one."""
    fields = [StructField(name, TYPES[kind], True) for name, kind in columns]
    if event_time:
        fields.append(StructField("event_time", TimestampType(), True))
    return StructType(fields)
