"""Which type of PostgreSQL holds a column, and which others hold all of its values too."""

from __future__ import annotations

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
    "smallint": ("integer", "bigint"),
    "integer": ("bigint",),
    "real": ("double precision",),
    "text": ("character varying",),
}
"""Types of a table that exists which hold every value of another."""


def column_type(kind: DataType) -> str | None:
    """The type of a column in a table that is created, as PostgreSQL spells it; None without."""
    if isinstance(kind, DecimalType):
        return f"numeric({kind.precision},{kind.scale})"
    return TYPES.get(type(kind))


def holds(existing: str, kind: DataType) -> bool:
    """Whether a column of a table that exists holds every value of the type."""
    own = column_type(kind)
    if own is not None and own.startswith("numeric"):
        return existing in (own, "numeric")
    return own is not None and existing in (own, *WIDER.get(own, ()))


def is_nested(kind: DataType) -> bool:
    """Whether values of the type are written as JSON."""
    return column_type(kind) == "jsonb"


def spelled(time: str) -> str:
    """A time that Python has not, in ISO 8601, as PostgreSQL reads it."""
    date, _, clock = time.removesuffix("Z").partition("T")
    year, month, day = date.rsplit("-", 2)
    number, era = (int(year), "") if int(year) > 0 else (1 - int(year), " BC")
    return f"{number:04d}-{month}-{day}{clock and f' {clock}+00'}{era}"
