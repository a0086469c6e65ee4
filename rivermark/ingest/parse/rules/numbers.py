"""Exact arithmetic, and casts that lose nothing; where Spark would raise, a row is in doubt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from rivermark.ingest.parse.lane.lines import Mask
from rivermark.ingest.parse.rules.vector import (
    MOST_DIGITS,
    Type,
    Untranslatable,
    Vector,
    both,
    either,
)

SAFE: Final = 2.0**62
"""Below it no sum or product of 64-bit numbers has overflowed, whatever a double rounds away."""
EXACT: Final = 2**53
"""Up to it every whole number is a double."""
TENS: Final = 22
"""Powers of ten that are doubles exactly."""
SECOND: Final = 1_000_000
DAY: Final = 86_400 * SECOND
LONGEST: Final = 38
DOUBLE: Final = Type("double", 64)


def same_type(left: Vector, right: Vector) -> tuple[Vector, Vector]:
    """Both as values that can be compared."""
    if left.type.kind != right.type.kind or left.type.kind == "text":
        raise Untranslatable(f"{left.type} beside {right.type}")
    if left.type.kind == "decimal":
        scale = max(left.type.scale, right.type.scale)
        left, right = rescaled(left, scale), rescaled(right, scale)
    return left, right


def rescaled(value: Vector, scale: int) -> Vector:
    """Decimals with more digits behind the point."""
    more = scale - value.type.scale
    if more == 0:
        return value
    if more < 0 or more > MOST_DIGITS:
        raise Untranslatable("a decimal that is rounded")
    kind = Type("decimal", value.type.size + more, scale)
    far = np.abs(value.values.astype(np.float64)) * 10.0**more >= SAFE
    return Vector(kind, value.values * 10**more, value.valid, value.doubtful).with_doubt(far)


def _exact(operate: Callable[[Any, Any], Any], left: Vector, right: Vector, kind: Type) -> Vector:
    """Sums, differences and products of whole numbers; in doubt where they leave the type."""
    values = operate(left.values, right.values)
    rough = operate(left.values.astype(np.float64), right.values.astype(np.float64))
    far: Mask = np.abs(rough) >= SAFE
    if kind.kind == "integer" and kind.size < 64:
        far |= (values >= 2 ** (kind.size - 1)) | (values < -(2 ** (kind.size - 1)))
    doubtful = either(left.doubtful, right.doubtful)
    return Vector(kind, values, both(left.valid, right.valid), doubtful).with_doubt(far)


def arithmetic(name: str, left: Vector, right: Vector) -> Vector:
    """Add, Subtract or Multiply."""
    operate = {"Add": np.add, "Subtract": np.subtract, "Multiply": np.multiply}[name]
    if left.type.kind == "decimal" and right.type.kind == "decimal":
        return _decimals(name, operate, left, right)
    if left.type != right.type:
        raise Untranslatable(f"{left.type} beside {right.type}")
    if left.type.kind == "integer":
        return _exact(operate, left, right, left.type)
    if left.type == DOUBLE:
        doubtful = either(left.doubtful, right.doubtful)
        values = operate(left.values, right.values)
        return Vector(DOUBLE, values, both(left.valid, right.valid), doubtful)
    raise Untranslatable(f"{name} of {left.type}")


def _decimals(name: str, operate: Callable[[Any, Any], Any], left: Vector, right: Vector) -> Vector:
    (p, s), (q, t) = ((side.type.size, side.type.scale) for side in (left, right))
    if name == "Multiply":
        kind = Type("decimal", p + q + 1, s + t)
    else:
        kind = Type("decimal", max(s, t) + max(p - s, q - t) + 1, max(s, t))
        left, right = rescaled(left, kind.scale), rescaled(right, kind.scale)
    if kind.size > LONGEST:
        raise Untranslatable("a decimal whose last digits are cut")
    return _exact(operate, left, right, kind)


def divided(left: Vector, right: Vector) -> Vector:
    """Quotients of doubles; in doubt where the divisor is zero, which raises."""
    if left.type != DOUBLE or right.type != DOUBLE:
        raise Untranslatable(f"Divide of {left.type}")
    zero = right.values == 0
    values = left.values / np.where(zero, 1.0, right.values)
    doubtful = either(left.doubtful, right.doubtful)
    return Vector(DOUBLE, values, both(left.valid, right.valid), doubtful).with_doubt(zero)


def signed(name: str, value: Vector) -> Vector:
    """Abs or UnaryMinus."""
    operate = np.abs if name == "Abs" else np.negative
    if value.type.kind not in ("integer", "double", "decimal"):
        raise Untranslatable(f"{name} of {value.type}")
    result = Vector(value.type, operate(value.values), value.valid, value.doubtful)
    if value.type.kind == "double":
        return result
    bits = value.type.size if value.type.kind == "integer" else 64
    return result.with_doubt(value.values == -(2 ** (bits - 1)))


def extreme(name: str, values: Sequence[Vector]) -> Vector:
    """Least or Greatest of the values that are not null."""
    least = name == "Least"
    if any(v.type != values[0].type or v.type.kind == "text" for v in values):
        raise Untranslatable("values of several types")
    best = values[0]
    doubtful = best.doubtful
    for value in values[1:]:
        better = value.values < best.values if least else value.values > best.values
        if value.valid is not None or best.valid is not None:
            has = np.True_ if value.valid is None else value.valid
            none = np.False_ if best.valid is None else ~best.valid
            better = has & (better | none)
        valid = None
        if value.valid is not None and best.valid is not None:
            valid = value.valid | best.valid
        best = Vector(best.type, np.where(better, value.values, best.values), valid)
        doubtful = either(doubtful, value.doubtful)
    if best.type.kind == "double":
        for value in values:
            doubtful = either(doubtful, np.isnan(value.values))
    return Vector(best.type, best.values, best.valid, doubtful)


def cast(value: Vector, to: Type, zone: str | None) -> Vector:
    """Casts that lose nothing; in doubt where a value does not fit."""
    match value.type.kind, to.kind:
        case _ if value.type == to:
            return value
        case "integer", "integer":
            return _narrowed(value, to)
        case "integer", "double" if to.size == 64:
            return Vector(to, value.values.astype(np.float64), value.valid, value.doubtful)
        case "integer", "decimal":
            whole = Vector(Type("decimal", 19, 0), value.values, value.valid, value.doubtful)
            return _fitting(rescaled(whole, to.scale), to)
        case "decimal", "decimal":
            return _fitting(rescaled(value, to.scale), to)
        case "decimal", "double" if to.size == 64 and value.type.scale <= TENS:
            # Both are doubles exactly, so that their quotient is rounded once.
            values = value.values / 10.0**value.type.scale
            far = _beyond(value.values, EXACT)
            return Vector(to, values, value.valid, value.doubtful).with_doubt(far)
        case "double", "double" if to.size == 64:
            return Vector(to, value.values, value.valid, value.doubtful)
        case "timestamp", "date" if zone == "UTC":
            return Vector(to, value.values // DAY, value.valid, value.doubtful)
        case "date", "timestamp" if zone == "UTC":
            return Vector(to, value.values * DAY, value.valid, value.doubtful)
        case "timestamp", "integer" if to.size == 64:
            return Vector(to, value.values // SECOND, value.valid, value.doubtful)
    raise Untranslatable(f"{value.type} as {to}")


def _narrowed(value: Vector, to: Type) -> Vector:
    result = Vector(to, value.values, value.valid, value.doubtful)
    if to.size >= value.type.size:
        return result
    bound = 2 ** (to.size - 1)
    return result.with_doubt((value.values >= bound) | (value.values < -bound))


def _fitting(value: Vector, to: Type) -> Vector:
    result = Vector(to, value.values, value.valid, value.doubtful)
    if to.size > MOST_DIGITS:
        return result
    return result.with_doubt(_beyond(value.values, 10**to.size - 1))


def _beyond(values: Any, bound: int) -> Mask:
    """Which values are larger than a bound, or smaller than its opposite."""
    mask: Mask = (values > bound) | (values < -bound)
    return mask
