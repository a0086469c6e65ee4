"""Rows of a table's schema with all kinds of faults in them, the same ones each time."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    StringType,
    StructType,
    TimestampType,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MOMENTS = (
    *(NOON + n * HOUR for n in (-1, 0, 0, 1, 2, 3, 24, 24 * 40)),
    datetime(1999, 12, 31, tzinfo=UTC),
    datetime(2190, 1, 1, tzinfo=UTC),
)
TEXTS = ("", "CARD", "gold", "first", "update", "card", "yellow", "B09")
DOUBLES = (-200.0, -73.9, 0.0, 40.7, 60.0, 1e6, math.nan)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The schema in Arrow's terms, moments in UTC."""
    return to_arrow_schema(schema, timezone="UTC")


def faulty_rows(schema: StructType, count: int, *, seed: int = 7, empty: float = 0.1) -> pa.Table:
    """Rows of values from small sets, so that all of them occur together; some are empty."""
    chance = random.Random(seed)
    rows = [
        {
            f.name: None if chance.random() < empty else _value(f.dataType, chance)
            for f in schema.fields
        }
        for _ in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema(schema))


def a_row(schema: StructType, **values: Any) -> dict[str, Any]:
    """A row that has these values, and none else."""
    return {f.name: values.get(f.name) for f in schema.fields}


def _value(kind: DataType, chance: random.Random) -> Any:
    match kind:
        case TimestampType():
            return chance.choice(MOMENTS)
        case DateType():
            return chance.choice([date(1999, 1, 1), date(2026, 3, 2), date(2026, 3, 3)])
        case BooleanType():
            return chance.random() < 0.5
        case DecimalType():
            return Decimal(chance.choice([-500, -1, 0, 1, 2, 3, 300]))
        case IntegralType():
            return chance.choice([-1, 0, 1, 2, 3, 5, 23, 40, 300, 100_000])
        case FractionalType():
            return chance.choice(DOUBLES)
        case StringType():
            return chance.choice(TEXTS)
        case ArrayType(elementType=element):
            return [_value(element, chance) for _ in range(chance.choice([0, 1, 2, 4, 5]))]
        case StructType(fields=fields):
            return {f.name: _value(f.dataType, chance) for f in fields}
    raise AssertionError(kind)
