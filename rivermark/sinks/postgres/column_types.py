"""The PostgreSQL type of a column, and others that hold all of its values too."""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

TYPES: Final[dict[type[DataType], str]] = {
    ArrayType: "jsonb",
    BinaryType: "bytea",
    BooleanType: "boolean",
    ByteType: "smallint",
    DateType: "date",
    DoubleType: "double precision",
    FloatType: "real",
    IntegerType: "integer",
    LongType: "bigint",
    MapType: "jsonb",
    ShortType: "smallint",
    StringType: "text",
    StructType: "jsonb",
    TimestampType: "timestamp with time zone",
}
WIDER: Final = {
    "smallint": ("integer", "bigint", "real", "double precision"),
    "integer": ("bigint", "double precision"),
    "real": ("double precision",),
    "text": ("character varying",),
}
"""Types of a table that exists which hold every value of another."""


NUMERIC: Final = re.compile(r"numeric\((\d+),(-?\d+)\)")
DIGITS: Final = {"smallint": 5, "integer": 10, "bigint": 19}
LIMITED: Final = re.compile(r"character varying\(\d+\)")
"""Holds most texts; one that is too long is a row that was not delivered."""


def column_type(kind: DataType) -> str | None:
    """The type of a column in a table that is created, as PostgreSQL spells it; None without."""
    if isinstance(kind, DecimalType):
        return f"numeric({kind.precision},{kind.scale})"
    return TYPES.get(type(kind))


def holds(existing: str, kind: DataType) -> bool:
    """True if a column of a table that exists holds every value of the type, or text of it."""
    own = column_type(kind)
    if own is None:
        return False
    if existing in (own, *WIDER.get(own, ())):
        return True
    if own == "text":
        return LIMITED.fullmatch(existing) is not None
    digits = _digits(own)
    if digits is None:
        return False
    room = (999, 999) if existing == "numeric" else _digits(existing)
    is_numeric = existing.startswith("numeric")
    return is_numeric and room is not None and digits[0] <= room[0] and digits[1] <= room[1]


def _digits(kind: str) -> tuple[int, int] | None:
    """Number of digits of a type's numbers before the point and behind it."""
    if kind in DIGITS:
        return DIGITS[kind], 0
    parsed = NUMERIC.fullmatch(kind)
    return None if parsed is None else (int(parsed[1]) - int(parsed[2]), int(parsed[2]))


def is_nested(kind: DataType) -> bool:
    """Returns True if values of the type are written as JSON."""
    return column_type(kind) == "jsonb"


def spelled(time: str) -> str:
    """A time that Python has not, in ISO 8601, as PostgreSQL reads it."""
    date, _, clock = time.removesuffix("Z").partition("T")
    year, month, day = date.rsplit("-", 2)
    number, era = (int(year), "") if int(year) > 0 else (1 - int(year), " BC")
    return f"{number:04d}-{month}-{day}{clock and f' {clock}+00'}{era}"
