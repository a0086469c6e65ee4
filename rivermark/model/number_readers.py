r"""Numbers out of texts, by one definition for all types.

A number is, in ASCII: a sign or none, digits with at most one decimal point among, before or behind
them, and an exponent of up to three digits or none: `-12`, `+0.5`, `.5`, `5.`, `1.2E-3`. Spaces
around it are no part of it. Nothing else is one: no other digits or spaces, no control characters,
no units (`20.5F`, `0x1p3`), no marks of thousands, no NaN and no infinity. Where a source writes
decimal commas the comma stands for the point, and a text with a point is no number: `1.021` may
mean a thousand.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final, Self

import pyarrow as pa
from pyspark.sql.types import (
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
)

from rivermark.model.errors import DeclarationError
from rivermark.model.reader import ValueReader

LONGEST_NUMBER: Final = 400
"""Characters of a number: a double written out in full has up to 330."""
NUMBER: Final = r"[+-]?(?:[0-9]+(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]{{1,3}})?"
DIGITS: Final = r"[+-]?[0-9]+"
POINT_AND_ZEROS: Final = r"[+-]?[0-9]*\.0*"
UP_TO_19_DIGITS: Final = r"[+-]?(?=[0-9.]{1,20}[eE])(?:[0-9]{1,19}\.?[0-9]*|\.[0-9]+)[eE]"
MOST_DIGITS: Final = 38
"""Digits before the point of a decimal that is looked at, zeros that an exponent adds included."""

_POINT, _COMMA = (re.compile(NUMBER.format(point=point)) for point in (r"\.", ","))
_DIGITS, _POINT_AND_ZEROS = re.compile(DIGITS), re.compile(POINT_AND_ZEROS)
_UP_TO_19_DIGITS: Final = re.compile(UP_TO_19_DIGITS)
_EXACT: Final = Context(prec=2 * LONGEST_NUMBER + 2000)
_BITS: Final[dict[type[DataType], int]] = {ShortType: 16, IntegerType: 32, LongType: 64}


def number_text(text: str, *, decimal_comma: bool) -> str | None:
    """The text of a number with its decimal point, without spaces around; None for any other."""
    plain = text.strip(" ")
    pattern = _COMMA if decimal_comma else _POINT
    if len(plain) > LONGEST_NUMBER or pattern.fullmatch(plain) is None:
        return None
    return plain.replace(",", ".")


@dataclass(frozen=True)
class IntegerReader(ValueReader):
    """Whole numbers."""

    decimal_comma: bool = False

    def fitted(self, kind: DataType) -> Self | None:
        """Returns the reader for a field of whole numbers."""
        return replace(self, type=kind) if type(kind) in _BITS else None

    def value(self, text: str) -> int | None:
        """The whole number that a text means."""
        plain = number_text(text, decimal_comma=self.decimal_comma)
        whole = None if plain is None else _whole(plain)
        if whole is None:
            return None
        bound = 1 << (_BITS[type(self.type)] - 1)
        return whole if -bound <= whole < bound else None


def _whole(plain: str) -> int | None:
    if _DIGITS.fullmatch(plain):
        return int(plain)
    if not (_POINT_AND_ZEROS.fullmatch(plain) or _UP_TO_19_DIGITS.match(plain)):
        return None
    exact = Decimal(plain)
    # Looked at first: a large exponent makes a number of very many digits.
    if exact.adjusted() >= MOST_DIGITS:
        return None
    return int(exact) if exact == exact.to_integral_value() else None


@dataclass(frozen=True)
class DecimalReader(ValueReader):
    """Exact decimals."""

    type: DecimalType
    decimal_comma: bool = False

    def value(self, text: str) -> Decimal | None:
        """The decimal that a text means, rounded half up."""
        plain = number_text(text, decimal_comma=self.decimal_comma)
        if plain is None or (exact := Decimal(plain)).adjusted() >= MOST_DIGITS:
            return None
        rounded = exact.quantize(Decimal(1).scaleb(-self.type.scale), ROUND_HALF_UP, _EXACT)
        if not rounded:
            return Decimal(0)
        most = self.type.precision - self.type.scale
        return rounded if rounded.adjusted() < most else None


@dataclass(frozen=True)
class NumberReader(ValueReader):
    """Doubles and floats."""

    decimal_comma: bool = False

    def fitted(self, kind: DataType) -> Self | None:
        """Returns the reader for a field of floating-point numbers."""
        return replace(self, type=kind) if isinstance(kind, DoubleType | FloatType) else None

    def value(self, text: str) -> float | None:
        """The number nearest to what a text means."""
        plain = number_text(text, decimal_comma=self.decimal_comma)
        if plain is None:
            return None
        # Rounded once: the float nearest to a double may be another one.
        is_single = isinstance(self.type, FloatType)
        number: float = pa.scalar(plain).cast(pa.float32()).as_py() if is_single else float(plain)
        return number if math.isfinite(number) else None


def integer(kind: DataType | None = None, *, decimal_comma: bool = False) -> IntegerReader:
    """Whole numbers, also when a source wrote them as '2.0' or '2e3'; '2.5' is not one.

    Of numbers with an exponent, those of up to 19 digits before it.
    """
    reader = IntegerReader(LongType(), decimal_comma).fitted(kind or LongType())
    if reader is None:
        raise DeclarationError(f"readers.integer: {kind} is no type of whole numbers")
    return reader


def decimal(precision: int = 12, scale: int = 2, *, decimal_comma: bool = False) -> DecimalReader:
    """Exact decimals, rounded half up to `scale`; what needs more digits before it is not read."""
    return DecimalReader(DecimalType(precision, scale), decimal_comma)


def number(kind: DataType | None = None, *, decimal_comma: bool = False) -> NumberReader:
    """Doubles (or floats), the nearest to the text; what is beyond the largest one is not read."""
    reader = NumberReader(DoubleType(), decimal_comma).fitted(kind or DoubleType())
    if reader is None:
        raise DeclarationError(f"readers.number: {kind} is no type of floating-point numbers")
    return reader
