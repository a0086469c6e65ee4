"""How the text of a value becomes a typed one: every reader returns null for what it cannot read.

Readers expect a Spark session whose time zone is UTC, as rivermark.runtime.spark.session makes it.
They never raise, although Spark 4 is ANSI by default: a row whose text fails is quarantined.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampType,
)

from rivermark.model.number_readers import decimal, integer, number
from rivermark.model.reader import NamedReader, Reader
from rivermark.model.time_readers import (
    epoch_millis,
    local_timestamp,
    names_instant,
    utc_timestamp,
)

__all__ = [
    "NamedReader",
    "Reader",
    "boolean",
    "decimal",
    "epoch_millis",
    "has_reader",
    "integer",
    "local_timestamp",
    "names_instant",
    "number",
    "reader_for",
    "utc_timestamp",
]


def reader_for(kind: DataType) -> Reader:
    """The reader of a type where a field names none.

    Raises:
        TypeError: for a type without a reader.
    """
    if isinstance(kind, StringType):
        return NamedReader("text", kind, lambda text: text)
    if isinstance(kind, ShortType | IntegerType | LongType):
        return integer(kind)
    if isinstance(kind, DecimalType):
        return decimal(kind.precision, kind.scale)
    if isinstance(kind, DoubleType | FloatType):
        return number(kind)
    if isinstance(kind, BooleanType):
        return boolean()
    if isinstance(kind, TimestampType):
        return utc_timestamp()
    raise TypeError(f"no reader for {kind.simpleString()}")


def has_reader(kind: DataType) -> bool:
    """Whether `reader_for` knows the type."""
    try:
        reader_for(kind)
    except TypeError:
        return False
    return True


def boolean() -> Reader:
    """true/false, t/f, yes/no, y/n, 1/0 in any letter case."""

    def read(text: Column) -> Column:
        word = F.lower(F.trim(text))
        return F.when(word.isin("true", "t", "yes", "y", "1"), F.lit(True)).when(
            word.isin("false", "f", "no", "n", "0"), F.lit(False)
        )

    return NamedReader("boolean", BooleanType(), read)
