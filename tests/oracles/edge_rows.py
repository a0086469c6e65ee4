"""Rows with values at every edge of their types, for comparing evaluators of conditions."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    StringType,
    StructType,
    TimestampType,
)

from rivermark.lake.arrow_types import arrow_schema
from rivermark.model.ddl import struct_type

LONGS: Final = (0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 264, 265, 10**7)
DOUBLES: Final = (
    *(0.0, -0.0, 1.0, -1.0, 0.1, 180.0, 180.00000000000003, -90.0, 1e308, -1e308, 5e-324),
    *(float("nan"), float("inf"), float("-inf"), 2.0**53, 40.5, -74.05, 3600.0, 23.0),
)
DIGITS: Final = ("0", "1", "-1", "9", "100", "99", "7.5", "-459.67", "5", "123456789", "-0.01")
MOMENTS: Final = (
    *("1969-12-31T23:59:59.999999", "1970-01-01T00:00:00", "1970-01-02T12:00:00"),
    *("2009-01-01T00:00:00", "2009-01-01T04:59:59.999999", "2009-01-01T05:00:00"),
    *("2024-03-10T06:59:59", "2024-03-10T07:00:00", "2024-03-10T07:30:00.5"),
    *("2024-11-03T04:30:00", "2024-11-03T05:00:00", "2024-11-03T05:30:00", "2024-11-03T06:30:00"),
    *("2024-01-31T23:00:00", "2024-02-01T04:59:59", "2024-02-08T05:00:00", "2024-01-24T05:00:00"),
    *("1583-01-01T00:00:00", "2037-12-31T00:00:00", "2038-06-01T00:00:00", "9999-12-31T23:59:59"),
)
TEXTS: Final = (
    *("", " ", "a", "A", "High", "Low", "Yellow ", "green", "taxi/green_tripdata_2024-02.csv"),
    *("x/yellow_2024-01.csv", "Zoë", "İstanbul", "日本", "\U0001f600", "a\nb", "tab\t", "x" * 40),
    *("2024-03-10 02:30:00", "2024-11-03 01:30:00", "2024-11-03T01:30:00-05:00", " 2024-01-01 "),
    *("2024-03-10T02:30:00Z", "2024-11-03 01:30:00 America/New_York", "now", "1", "1.5", "\u00a0"),
    *('["dispatching_base_num","x"]', '["VendorID"]', "2024-02-30 00:00:00", "2024-01-01T00:00"),
)


def edges(kind: DataType, draw: random.Random) -> Any:
    """A value of a type, often one at an edge of it, and null now and then."""
    if draw.random() < 0.12:
        return None
    match kind:
        case StringType():
            return draw.choice(TEXTS)
        case DecimalType():
            most = Decimal("9" * kind.precision).scaleb(-kind.scale, Context(60))
            value = Decimal(draw.choice(DIGITS))
            return draw.choice(
                [value if abs(value) < most else most, most, most.copy_negate(), value % 1]
            )
        case DoubleType():
            return draw.choice(DOUBLES)
        case FloatType():
            return float(np.float32(draw.choice([d for d in DOUBLES if not abs(d) > 1e38])))
        case TimestampType():
            moment = datetime.fromisoformat(draw.choice(MOMENTS)).replace(tzinfo=UTC)
            return moment + draw.choice([timedelta(0), timedelta(0), timedelta(hours=1)]) * (
                moment.year < 9999
            )
        case DateType():
            return draw.choice([date(1969, 12, 31), date(2024, 2, 29), date(2024, 3, 10)])
    if kind.simpleString() == "boolean":
        return draw.random() < 0.5
    bits = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}[kind.simpleString()]
    bound = 2 ** (bits - 1)
    values = [n for n in LONGS if -bound <= n < bound]
    return draw.choice([*values, bound - 1, -bound, draw.randint(-300, 300)])


def table(schema: StructType, count: int, seed: int) -> pa.Table:
    """Rows of a schema, always the same ones for a seed."""
    draw = random.Random(seed)
    arrow = arrow_schema(schema)
    return pa.table(
        [
            pa.array([edges(field.dataType, draw) for _ in range(count)], arrow.field(n).type)
            for n, field in enumerate(schema.fields)
        ],
        schema=arrow,
    )


KINDS: Final = struct_type(
    "b boolean, c boolean, i int, j int, n long, m long, s short, d double, e double, f float, "
    "p decimal(12,2), q decimal(12,2), r decimal(38,9), u decimal(18,4), t timestamp, "
    "v timestamp, y date, z date, x string, w string, _file string"
)
