"""Readers as expressions of Spark, by the patterns of those in Python.

They expect a session whose time zone is UTC, and never raise, although Spark 4 is ANSI by default.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DecimalType,
    FloatType,
    LongType,
    TimestampType,
)

from rivermark.model.contract import Field
from rivermark.model.errors import DeclarationError
from rivermark.model.field_readers import FALSE, TRUE, BooleanReader, TextReader
from rivermark.model.number_readers import (
    DIGITS,
    LONGEST_NUMBER,
    NUMBER,
    POINT_AND_ZEROS,
    UP_TO_19_DIGITS,
    DecimalReader,
    IntegerReader,
    NumberReader,
)
from rivermark.model.reader import LandingTime
from rivermark.model.time_readers import (
    FEWEST_MILLIS,
    FIRST_MILLIS,
    LAST_MILLIS,
    WALL,
    ZONE,
    InstantReader,
    MillisReader,
    WallReader,
)

LARGEST: Final = (1.7976931348623157e308, 3.4028234663852886e38)
"""The largest double and float."""
ZERO: Final = r"^[+-]?[0.]+[eE]"


def value_of(field: Field, text: Column) -> Column:
    """The value of a text; null for none, and for one that cannot be read.

    Raises:
        DeclarationError: the field's reader is SQL, which Spark does not evaluate.
    """
    match reader := field.reader:
        case LandingTime():
            return F.col("_landed_at")
        case TextReader():
            return text
        case BooleanReader():
            word = F.lower(F.trim(text))
            return F.when(word.isin(*TRUE), F.lit(True)).when(word.isin(*FALSE), F.lit(False))
        case IntegerReader():
            return _integer(_number(text, comma=reader.decimal_comma)).try_cast(field.type)
        case DecimalReader():
            return _number(text, comma=reader.decimal_comma).try_cast(field.type)
        case NumberReader():
            value = _number(text, comma=reader.decimal_comma).try_cast(field.type)
            return F.when(F.abs(value) <= LARGEST[isinstance(field.type, FloatType)], value)
        case InstantReader():
            plain = F.trim(text)
            return F.when(_is(plain, f"{WALL}(?:{ZONE})?"), _instant(plain))
        case WallReader():
            return _wall(F.trim(text), reader)
        case MillisReader():
            return _millis(_integer(_number(text)))
        case _:
            raise DeclarationError(
                f"field '{field.name}': a reader in SQL is not evaluated in real time"
            )


def _is(text: Column, pattern: str) -> Column:
    return text.rlike(rf"^(?:{pattern})\z")


def _number(text: Column, *, comma: bool = False) -> Column:
    """The text of a number with its decimal point; null for any other."""
    plain = F.trim(text)
    pattern = NUMBER.format(point="," if comma else r"\.")
    is_number = (F.length(plain) <= LONGEST_NUMBER) & _is(plain, pattern)
    return F.when(is_number, F.translate(plain, ",", ".") if comma else plain)


def _integer(plain: Column) -> Column:
    # Exact: the nonzero digits of a value that is rounded here lie below a tenth.
    exact = plain.try_cast(DecimalType(38, 19))
    is_exact = _is(plain, POINT_AND_ZEROS) | (
        plain.rlike(f"^{UP_TO_19_DIGITS}") & ((exact != 0) | plain.rlike(ZERO))
    )
    # The remainder, because floor overflows (and raises) next to the largest decimals.
    return F.when(_is(plain, DIGITS), plain.try_cast(LongType())).when(
        is_exact & (exact % 1 == 0), exact.try_cast(LongType())
    )


def _instant(plain: Column) -> Column:
    """The instant of an ISO-8601 text.

    A small z, which RFC 3339 allows, and a zone behind a minute are nothing to Spark's cast.
    """
    capital = F.regexp_replace(plain, "(?<=[0-9 ])z$", "Z")
    complete = F.regexp_replace(capital, "^(.{16})(?= ?[^ :])", "$1:00")
    is_rare = plain.endswith("z") | ~plain.substr(17, 1).isin(":", "")
    return F.when(is_rare, complete).otherwise(plain).try_cast(TimestampType())


def _wall(plain: Column, reader: WallReader) -> Column:
    in_utc = partial(F.to_utc_timestamp, tz=reader.zone)
    times = [F.when(_is(plain, WALL + ZONE), _instant(plain))]
    for each in reader.formats:
        time = F.try_to_timestamp(plain, F.lit(each.pattern))
        times.append(time if each.zoned else in_utc(time))
    if not reader.formats:
        times.append(in_utc(F.when(_is(plain, WALL), plain.try_cast(TimestampType()))))
    return F.coalesce(*times)


def _millis(millis: Column) -> Column:
    in_seconds = millis.between(1 - FEWEST_MILLIS, FEWEST_MILLIS - 1)
    is_moment = millis.between(FIRST_MILLIS, LAST_MILLIS) & ~in_seconds
    return F.timestamp_millis(F.when(is_moment, millis))
