"""Fit of the rows that a build makes to the columns of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StructType,
    TimestampType,
)

from rivermark.model.declared import place_of
from rivermark.model.errors import DeclarationError
from rivermark.model.nearest import did_you_mean
from rivermark.model.stream import Stream
from rivermark.model.table import Table

DIGITS: Final[dict[type[DataType], int]] = {
    ByteType: 3,
    ShortType: 5,
    IntegerType: 10,
    LongType: 19,
}
"""Whole numbers from the narrowest on, with the digits that they may have."""


def check_columns(stream: Stream, built: StructType) -> None:
    """Refuse rows that lack a column of a table that they are written to.

    Raises:
        DeclarationError: The first that is missing, and what there is.
    """
    for table in stream.tables:
        for fault in column_faults(stream.name, table, built):
            raise fault.at(place_of(stream))


def column_faults(
    stream: str, table: Table, built: StructType, *, exact: bool = False
) -> Iterator[DeclarationError]:
    """Columns of the table that the rows lack; with `exact` also values that a cast would change.

    Columns that the rows have beside those of the table are left out when they are written.
    """
    for column in table.schema.fields:
        if column.name not in built.names:
            near = did_you_mean(column.name, built.names)
            yield DeclarationError(
                f"stream '{stream}': its build makes no column '{column.name}' for table "
                f"'{table.name}'{near or ';'} it makes {', '.join(built.names)}"
            )
            continue
        made = built[column.name].dataType
        if exact and not fits(made, column.dataType):
            to = column.dataType.simpleString()
            yield DeclarationError(
                f"stream '{stream}': its build makes '{column.name}' as {made.simpleString()}, and "
                f"table '{table.name}' holds {to}: values may change when they are written; cast "
                f'it, as in .cast("{to}")'
            )


def fits(made: DataType, to: DataType) -> bool:
    """Returns True if every value of a type is one of another type too."""
    if isinstance(made, NullType) or made == to:
        return True
    if isinstance(made, ArrayType) and isinstance(to, ArrayType):
        return fits(made.elementType, to.elementType)
    if isinstance(made, MapType) and isinstance(to, MapType):
        return fits(made.keyType, to.keyType) and fits(made.valueType, to.valueType)
    if isinstance(made, StructType) and isinstance(to, StructType):
        pairs = zip(made.fields, to.fields, strict=False)
        return made.names == to.names and all(fits(m.dataType, t.dataType) for m, t in pairs)
    if isinstance(to, DecimalType):
        whole, scale = _digits(made)
        return whole <= to.precision - to.scale and scale <= to.scale
    if type(made) in DIGITS and type(to) in DIGITS:
        return DIGITS[type(made)] <= DIGITS[type(to)]
    if isinstance(to, DoubleType):
        return isinstance(made, FloatType | ByteType | ShortType | IntegerType)
    return isinstance(made, DateType) and isinstance(to, TimestampType)


def _digits(made: DataType) -> tuple[int, int]:
    """Number of digits before the point and behind it; too many for other types."""
    if isinstance(made, DecimalType):
        return made.precision - made.scale, made.scale
    return DIGITS.get(type(made), 99), 0
