"""The kind of a column: the family of its type, and the numbers that it has room for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Final, Literal

import pyarrow as pa

EXACT: Final = Context(prec=200)
"""Enough digits for every sum of limits and of values of a decimal(38)."""

Family = Literal[
    "exact",
    "float",
    "text",
    "boolean",
    "date",
    "instant",
    "local",
    "list",
    "struct",
    "other",
]


@dataclass(frozen=True)
class ColumnKind:
    """The kind of a column.

    `exact` are whole numbers and decimals, of `digits` digits with `scale` of them behind the
    point; whole numbers have `bits`. `local` are times without a zone. `shown` is the type's name.
    """

    family: Family
    shown: str = field(compare=False)
    digits: int = 0
    scale: int = 0
    bits: int = 0
    fields: Mapping[str, ColumnKind] = field(default_factory=dict, compare=False)

    @property
    def bounds(self) -> tuple[Decimal, Decimal]:
        """The smallest and the largest value that an exact number of this kind can have."""
        if self.bits:
            return Decimal(-(2 ** (self.bits - 1))), Decimal(2 ** (self.bits - 1) - 1)
        largest = EXACT.scaleb(Decimal(10**self.digits - 1), -self.scale)
        return largest.copy_negate(), largest

    def in_one_order(self, other: ColumnKind) -> bool:
        """Returns True if values of both compare with nothing rounded."""
        if self.family == other.family == "exact":
            whole = max(self.digits - self.scale, other.digits - other.scale)
            return whole + max(self.scale, other.scale) <= 38
        return self.family == other.family and self.family in ("float", "date", "instant", "local")


WHOLE_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 19}


def whole(bits: int, shown: str) -> ColumnKind:
    """Whole numbers of so many bits."""
    return ColumnKind("exact", shown, WHOLE_DIGITS[bits], bits=bits)


def kinds_of_arrow(schema: pa.Schema) -> dict[str, ColumnKind]:
    """The columns of an Arrow schema, as DuckDB reads them."""
    return {column.name: _of_arrow(column.type) for column in schema}


def _of_arrow(kind: pa.DataType) -> ColumnKind:
    shown, types = str(kind), pa.types
    if types.is_integer(kind) and types.is_signed_integer(kind):
        return whole(kind.bit_width, shown)
    if types.is_decimal(kind):
        return ColumnKind("exact", shown, kind.precision, kind.scale)
    if types.is_list(kind) or types.is_large_list(kind):
        return ColumnKind("list", shown)
    if types.is_struct(kind):
        fields = {inner.name: _of_arrow(inner.type) for inner in kind}
        return ColumnKind("struct", shown, fields=fields)
    if types.is_timestamp(kind):
        return ColumnKind("local" if kind.tz is None else "instant", shown)
    families: dict[Family, bool] = {
        "float": types.is_float32(kind) or types.is_float64(kind),
        "text": shown in ("string", "large_string", "string_view"),
        "boolean": types.is_boolean(kind),
        "date": types.is_date(kind),
    }
    return ColumnKind(next((f for f, fits in families.items() if fits), "other"), shown)
