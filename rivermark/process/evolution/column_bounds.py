"""Numbers that the column of a row's field cannot hold: said before Spark would raise for them."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any, Final

from rivermark.model.column_type import ColumnType
from rivermark.process.errors import Misuse

DECIMAL: Final = re.compile(r"(?:decimal|numeric|dec)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
BITS: Final = {"tinyint": 8, "byte": 8, "smallint": 16, "short": 16, "int": 32, "integer": 32}
LONGEST: Final = 100
"""Digits that a number is rounded with: more than any column has."""


@dataclass(frozen=True)
class Bound:
    """The bound of a column's numbers: less than `end` either way, once they are rounded."""

    type: str
    end: Decimal
    scale: int

    def check(self, name: str, value: Any) -> None:
        """Raise Misuse for a number that the column of the field cannot hold."""
        if not isinstance(value, Decimal | int):
            return
        if isinstance(value, Decimal) and not value.is_finite():
            raise Misuse(f"'{name}' is {value}, and its column is {self.type}")
        with localcontext() as context:
            context.prec = LONGEST
            number = Decimal(value)
            if number.adjusted() < LONGEST // 2:
                number = number.quantize(Decimal(1).scaleb(-self.scale), ROUND_HALF_UP)
            if -self.end < number < self.end or (not self.scale and number == -self.end):
                return
        raise Misuse(
            f"'{name}' is {value}, and its column is {self.type}, which has no room for it: give "
            "the column more digits"
        )


def bound_of(column: str) -> Bound | None:
    """The bound of a column of numbers, by its DDL; None where Python's own types say it."""
    kind = column.strip().lower()
    if parsed := DECIMAL.fullmatch(kind):
        precision, scale = int(parsed[1]), int(parsed[2] or 0)
        return Bound(kind, Decimal(10) ** (precision - scale), scale)
    bits = BITS.get(kind)
    return None if bits is None else Bound(kind, Decimal(2 ** (bits - 1)), 0)


def bounds_of(record: Any) -> tuple[tuple[str, Bound], ...]:
    """The bounds of a record's fields whose column type is annotated."""
    cls = getattr(record, "__origin__", record)
    if not isinstance(cls, type):
        return ()
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except (NameError, TypeError):
        return ()  # Refused elsewhere, where it matters.
    return tuple(
        (name, bound)
        for name, hint in hints.items()
        for column in _columns(hint)
        if (bound := bound_of(column)) is not None
    )


def _columns(hint: Any) -> Iterator[str]:
    """The column type that a field's annotation names, if any; also of one that may be None."""
    for part in (hint, *typing.get_args(hint)):
        for each in getattr(part, "__metadata__", ()):
            if isinstance(each, ColumnType):
                yield each.ddl
