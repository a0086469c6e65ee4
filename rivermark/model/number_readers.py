r"""Numbers out of texts, by one definition for all types.

A number is, in ASCII: a sign or none, digits with at most one decimal point among, before or behind
them, and an exponent of up to three digits or none: `-12`, `+0.5`, `.5`, `5.`, `1.2E-3`. Spaces
around it are no part of it. Nothing else is one: no other digits or spaces, no control characters,
no units (`20.5F`, `0x1p3`), no marks of thousands, no NaN and no infinity. Where a source writes
decimal commas the comma stands for the point, and a text with a point is no number: `1.021` may
mean a thousand.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, DoubleType, FloatType, LongType

from rivermark.model.reader import NamedReader, Reader

LONGEST_NUMBER: Final = 400
"""Characters of a number: a double written out in full has up to 330. A text of two million digits
took 100 seconds to be turned down: the cost grows with its square."""
LARGEST: Final[dict[type[DataType], float]] = {
    DoubleType: 1.7976931348623157e308,
    FloatType: 3.4028234663852886e38,
}

_NUMBER: Final = r"^[+-]?(?:[0-9]+(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]{{1,3}})?\z"
_DIGITS: Final = r"^[+-]?[0-9]+\z"
_POINT_AND_ZEROS: Final = r"^[+-]?[0-9]*\.0*\z"
_UP_TO_19_DIGITS: Final = r"^[+-]?(?=[0-9.]{1,20}[eE])(?:[0-9]{1,19}\.?[0-9]*|\.[0-9]+)[eE]"
_ZERO: Final = r"^[+-]?[0.]+[eE]"


def integer(kind: DataType | None = None, *, decimal_comma: bool = False) -> Reader:
    """Whole numbers, also when a source wrote them as '2.0' or '2e3'; '2.5' is not one.

    Of numbers with an exponent, those of up to 19 digits before it.
    """
    kind = kind or LongType()

    def read(text: Column) -> Column:
        plain = number_text(text, decimal_comma=decimal_comma)
        # Exact: the nonzero digits of a value that is rounded here lie below a tenth.
        exact = plain.try_cast(DecimalType(38, 19))
        is_exact = plain.rlike(_POINT_AND_ZEROS) | (
            plain.rlike(_UP_TO_19_DIGITS) & ((exact != 0) | plain.rlike(_ZERO))
        )
        # The remainder, because floor overflows (and raises) next to the largest decimals.
        return F.when(plain.rlike(_DIGITS), plain.try_cast(kind)).when(
            is_exact & (exact % 1 == 0), exact.try_cast(kind)
        )

    return NamedReader("integer", kind, read, decimal_comma)


def decimal(precision: int = 12, scale: int = 2, *, decimal_comma: bool = False) -> Reader:
    """Exact decimals, rounded half up to `scale`; what needs more digits before it is not read."""

    def read(text: Column) -> Column:
        plain = number_text(text, decimal_comma=decimal_comma)
        return plain.try_cast(DecimalType(precision, scale))

    return NamedReader("decimal", DecimalType(precision, scale), read, decimal_comma)


def number(kind: DataType | None = None, *, decimal_comma: bool = False) -> Reader:
    """Doubles (or floats); what is beyond the largest one is not read."""
    kind = kind or DoubleType()
    largest = LARGEST[type(kind)]

    def read(text: Column) -> Column:
        value = number_text(text, decimal_comma=decimal_comma).try_cast(DoubleType())
        return F.when(F.abs(value) <= largest, value).cast(kind)

    return NamedReader("number", kind, read, decimal_comma)


def number_text(text: Column, *, decimal_comma: bool = False) -> Column:
    """The text of a number with its decimal point, without spaces around; null for any other."""
    plain = F.trim(text)
    pattern = _NUMBER.format(point="," if decimal_comma else r"\.")
    is_number = (F.length(plain) <= LONGEST_NUMBER) & plain.rlike(pattern)
    return F.when(is_number, F.translate(plain, ",", ".") if decimal_comma else plain)
