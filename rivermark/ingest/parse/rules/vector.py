"""A column of values in numpy, with what is null and what is doubtful."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.parse.lane.lines import Mask

Kind = Literal["boolean", "integer", "double", "decimal", "timestamp", "date", "text", "interval"]
MOST_DIGITS: Final = 18
"""Digits of a decimal that any 64-bit number holds."""
INTEGERS: Final = {"byte": 8, "short": 16, "integer": 32, "long": 64}


class Untranslatable(Exception):
    """An expression whose meaning is not known here to be exactly Spark's."""


@dataclass(frozen=True)
class Type:
    """A type of Spark as the values are held; `size` is bits of an integer, digits of a decimal."""

    kind: Kind
    size: int = 0
    scale: int = 0

    @property
    def dtype(self) -> Any:
        """The values' type in numpy, of all but texts."""
        return {"boolean": np.bool_, "double": np.float64}.get(self.kind, np.int64)


@dataclass
class Vector:
    """Values of one type: integers, ticks and unscaled decimals as int64, texts as Arrow has them.

    One value stands for every row where there is only one. `valid` is false where a value is null,
    `doubtful` where Spark has to say what it is; None stands for nowhere null, nowhere in doubt.
    """

    type: Type
    values: Any
    valid: Mask | None = None
    doubtful: Mask | None = None

    def with_doubt(self, more: Mask) -> Vector:
        """The same, with further rows in doubt."""
        return Vector(self.type, self.values, self.valid, either(self.doubtful, more))


def either(left: Mask | None, right: Mask | None) -> Mask | None:
    """Rows of one or the other; None where there is none."""
    if right is None or not right.any():
        return left
    return right if left is None else left | right


def both(left: Mask | None, right: Mask | None) -> Mask | None:
    """Rows of both; None stands for all rows."""
    if left is None or right is None:
        return right if left is None else left
    return left & right


def type_of(name: Any) -> Type:
    """A type by Spark's JSON of it: a name, or an object for what has parts.

    Raises:
        Untranslatable: values of that type are not held here.
    """
    if not isinstance(name, str):
        raise Untranslatable(str(name))
    if name in INTEGERS:
        return Type("integer", INTEGERS[name])
    if name in ("boolean", "timestamp", "date"):
        return Type(name)  # type: ignore[arg-type]
    if name == "string":
        return Type("text")
    if name in ("double", "float"):
        return Type("double", 64 if name == "double" else 32)
    if name.startswith("decimal("):
        precision, scale = name.removeprefix("decimal(").removesuffix(")").split(",")
        return Type("decimal", int(precision), int(scale))
    if name.startswith("interval ") and not {"year", "month"} & set(name.split()):
        return Type("interval")
    raise Untranslatable(name)


def vector_of(column: pa.Array) -> Vector:
    """The values of an Arrow column.

    Raises:
        Untranslatable: values of that type are not held here.
    """
    kind = column.type
    valid: Mask | None = None
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_string(kind):
        return Vector(Type("text"), column, valid)
    if pa.types.is_decimal128(kind):
        return _decimals(column, valid)
    if pa.types.is_boolean(kind):
        plain = pc.fill_null(column, False) if valid is not None else column
        return Vector(Type("boolean"), plain.to_numpy(zero_copy_only=False), valid)
    if pa.types.is_floating(kind):
        plain = pc.fill_null(column, 0.0) if valid is not None else column
        values = plain.to_numpy().astype(np.float64)
        return Vector(Type("double", kind.bit_width), values, valid)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        held, column = Type("timestamp"), column.cast(pa.timestamp("us", kind.tz)).view(pa.int64())
    elif pa.types.is_duration(kind):
        held, column = Type("interval"), column.cast(pa.duration("us")).view(pa.int64())
    elif pa.types.is_date32(kind):
        held, column = Type("date"), column.view(pa.int32())
    elif pa.types.is_signed_integer(kind):
        held = Type("integer", kind.bit_width)
    else:
        raise Untranslatable(str(kind))
    plain = pc.fill_null(column, 0) if valid is not None else column
    return Vector(held, plain.to_numpy().astype(np.int64, copy=False), valid)


def _decimals(column: pa.Array, valid: Mask | None) -> Vector:
    """Unscaled values; those that no 64-bit number holds are in doubt."""
    words = np.frombuffer(column.buffers()[1], np.int64)
    pairs = words[2 * column.offset : 2 * (column.offset + len(column))].reshape(-1, 2)
    low, high = pairs[:, 0].copy(), pairs[:, 1]
    if valid is not None:
        low[~valid] = 0
    held = Vector(Type("decimal", column.type.precision, column.type.scale), low, valid)
    if column.type.precision <= MOST_DIGITS:
        return held
    wide = high != (low >> np.int64(63))
    return held.with_doubt(wide if valid is None else wide & valid)
