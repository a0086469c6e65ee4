"""How the text of a value becomes a typed one: every reader returns null for what it cannot read.

Readers expect a Spark session whose time zone is UTC, as rivermark.runtime.spark.session makes it.
They never raise, although Spark 4 is ANSI by default: a row whose text fails is quarantined.
"""

from __future__ import annotations

from collections.abc import Callable

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

Reader = Callable[[Column], Column]
"""Turns the text of a value into the field's type; null for a text that it cannot read."""

OFFSET = r"(?:[Zz]|[+-]\d{2}(?::?\d{2})?)$"
"""A zone at the end of an ISO-8601 text."""
LONGEST_NUMBER = 400
"""Characters of a number: a double written out in full has up to 330."""
FIRST_MILLIS, LAST_MILLIS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999 in milliseconds since 1970; far beyond them the conversion itself raises."""


def reader_for(kind: DataType) -> Reader:
    """The reader of a type where a field names none.

    Raises:
        TypeError: for a type without a reader.
    """
    if isinstance(kind, StringType):
        return lambda text: text
    if isinstance(kind, ShortType | IntegerType | LongType):
        return integer(kind)
    if isinstance(kind, DecimalType):
        return decimal(kind.precision, kind.scale)
    if isinstance(kind, DoubleType | FloatType):
        return number()
    if isinstance(kind, BooleanType):
        return boolean()
    if isinstance(kind, TimestampType):
        return utc_timestamp()
    raise TypeError(f"no reader for {kind.simpleString()}")


def short(text: Column) -> Column:
    """The text without spaces around it; nothing for one too long to be a number.

    A text of two million digits took 100 seconds to be turned down: the cost grows with its square.
    """
    plain = F.trim(text)
    return F.when(F.length(plain) <= LONGEST_NUMBER, plain)


def has_reader(kind: DataType) -> bool:
    """Whether `reader_for` knows the type."""
    try:
        reader_for(kind)
    except TypeError:
        return False
    return True


def integer(kind: DataType | None = None) -> Reader:
    """Whole numbers, also when a source wrote them as '2.0' or 2.0; '2.5' is not one."""
    kind = kind or LongType()

    def read(text: Column) -> Column:
        exact = short(text).try_cast(DecimalType(38, 9))
        return F.when(exact == F.floor(exact), exact.try_cast(kind))

    return read


def decimal(precision: int = 12, scale: int = 2, *, decimal_comma: bool = False) -> Reader:
    """Exact decimals, rounded half up to `scale`; NaN, infinities and overflow are not read."""

    def read(text: Column) -> Column:
        plain = short(F.regexp_replace(text, ",", ".") if decimal_comma else text)
        return plain.try_cast(DecimalType(precision, scale))

    return read


def number(*, decimal_comma: bool = False) -> Reader:
    """Finite doubles; NaN and infinities are not read: they poison every average."""

    def read(text: Column) -> Column:
        plain = short(F.regexp_replace(text, ",", ".") if decimal_comma else text)
        value = plain.try_cast(DoubleType())
        finite = ~F.isnan(value) & (F.abs(value) != F.lit(float("inf")))
        return F.when(finite & plain.rlike(r"^[+-]?[\d.]"), value)

    return read


def boolean() -> Reader:
    """true/false, t/f, yes/no, y/n, 1/0 in any letter case."""

    def read(text: Column) -> Column:
        word = F.lower(F.trim(text))
        return F.when(word.isin("true", "t", "yes", "y", "1"), F.lit(True)).when(
            word.isin("false", "f", "no", "n", "0"), F.lit(False)
        )

    return read


def utc_timestamp() -> Reader:
    """ISO-8601 instants; a text without offset is taken as UTC."""

    def read(text: Column) -> Column:
        plain = F.trim(text)
        return F.when(
            plain.rlike(r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}"), plain.try_cast(TimestampType())
        )

    return read


def local_timestamp(zone: str, *formats: str) -> Reader:
    """Wall-clock times of `zone`, as UTC instants.

    `formats` are Spark datetime patterns, tried in turn; without any, ISO-8601 local times. A wall
    time that a clock change makes ambiguous is taken as the earlier instant (summer time); one that
    the change skips is moved forward by the length of the gap (java.time.ZonedDateTime.ofLocal). A
    text that carries an offset already is read as the instant it names.
    """

    def read(text: Column) -> Column:
        plain = F.trim(text)
        instant = F.when(
            plain.rlike(OFFSET) & plain.rlike(r"\d[T ]\d"), plain.try_cast(TimestampType())
        )
        if formats:
            walls = [F.try_to_timestamp(plain, F.lit(f)) for f in formats]
        else:
            iso = plain.rlike(r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}")
            walls = [F.when(iso & ~plain.rlike(OFFSET), plain.try_cast(TimestampType()))]
        return F.coalesce(instant, *[F.to_utc_timestamp(w, zone) for w in walls])

    return read


def epoch_millis() -> Reader:
    """Milliseconds since 1970-01-01T00:00Z, of the years 1 to 9999; others are not read."""

    def read(text: Column) -> Column:
        millis = integer()(text)
        return F.timestamp_millis(F.when(millis.between(FIRST_MILLIS, LAST_MILLIS), millis))

    return read
