"""Readers of fields: they turn the text of a value into a typed one.

No reader raises for a text: a row whose text cannot be read is quarantined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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

from rivermark.model.declared import checked
from rivermark.model.number_readers import (
    DecimalReader,
    IntegerReader,
    NumberReader,
    decimal,
    integer,
    number,
)
from rivermark.model.reader import ANY, Reader, SqlReader, ValueReader
from rivermark.model.time_readers import epoch_millis, local_timestamp, utc_timestamp

__all__ = [
    "Reader",
    "boolean",
    "decimal",
    "epoch_millis",
    "has_reader",
    "integer",
    "local_timestamp",
    "number",
    "reader_for",
    "sql",
    "utc_timestamp",
]

TRUE: Final = ("true", "t", "yes", "y", "1")
FALSE: Final = ("false", "f", "no", "n", "0")


@dataclass(frozen=True)
class TextReader(ValueReader):
    """The text itself."""

    def value(self, text: str) -> str:
        """The text."""
        return text


@dataclass(frozen=True)
class BooleanReader(ValueReader):
    """Words for true and false."""

    def value(self, text: str) -> bool | None:
        """The truth that a word means."""
        word = text.strip(" ").lower()
        return True if word in TRUE else False if word in FALSE else None


def reader_for(kind: DataType) -> ValueReader:
    """The reader of a type where a field names none.

    Raises:
        TypeError: for a type without a reader.
    """
    if isinstance(kind, StringType):
        return TextReader(kind)
    if isinstance(kind, ShortType | IntegerType | LongType):
        return IntegerReader(kind)
    if isinstance(kind, DecimalType):
        return DecimalReader(kind)
    if isinstance(kind, DoubleType | FloatType):
        return NumberReader(kind)
    if isinstance(kind, BooleanType):
        return boolean()
    if isinstance(kind, TimestampType):
        return utc_timestamp()
    raise TypeError(f"no reader for {kind.simpleString()}")


def has_reader(kind: DataType) -> bool:
    """Returns True if `reader_for` knows the type."""
    try:
        reader_for(kind)
    except TypeError:
        return False
    return True


def boolean() -> BooleanReader:
    """true/false, t/f, yes/no, y/n, 1/0 in any letter case."""
    return BooleanReader(BooleanType())


@checked
def sql(expression: str, then: ValueReader | None = None) -> SqlReader:
    r"""A reader of your own: an expression in SQL over the column `text`, the text of the value.

    Its value is cast to the field's type; with `then` it is a text, which that reader reads. A text
    for which it is null, or fails, cannot be read. It is evaluated once for each different text.

        Field("paid", "int", read=readers.sql("CASE lower(text) WHEN 'card' THEN 1 END"))
        Field("id", "long", read=readers.sql(r"regexp_extract(text, 'id=(\d+)', 1)",
                                             then=readers.integer()))
    """
    return SqlReader(ANY, expression, then)
