"""Constants of a condition, as the JSON of Spark's plan writes them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rivermark.ingest.parse.rules.vector import Type, Untranslatable, Vector, type_of

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def literal(kind: str, text: str | None) -> Vector:
    """A constant, which stands for every row.

    Raises:
        Untranslatable: a null of no type, a type that is not held here, or more than 64 bits.
    """
    held = type_of(kind)
    if held.kind == "text":
        return Vector(held, pa.array([text or ""], pa.string()), _valid(text))
    value = 0 if text is None else _value(held, text)
    try:
        return Vector(held, np.array([value], held.dtype), _valid(text))
    except OverflowError as error:
        raise Untranslatable(text) from error


def _valid(text: str | None) -> Any:
    return np.zeros(1, np.bool_) if text is None else None


def _value(kind: Type, text: str) -> Any:
    try:
        match kind.kind:
            case "boolean":
                return {"true": True, "false": False}[text]
            case "double":
                return float(text)
            case "integer" | "interval":
                return int(text)
            case "decimal":
                return int(Decimal(text).scaleb(kind.scale))
            case "timestamp":
                moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
                return (moment - EPOCH) // timedelta(microseconds=1)
            case "date":
                return (date.fromisoformat(text) - EPOCH.date()).days
    except (KeyError, ValueError) as error:
        raise Untranslatable(text) from error
    raise Untranslatable(text)


def inner(kind: Type, text: str) -> int:
    """A constant as Spark holds it: a number of ticks or days, or the value itself.

    Raises:
        Untranslatable: it is no whole number of a type that is held here.
    """
    if kind.kind not in ("integer", "decimal", "timestamp", "date"):
        raise Untranslatable(f"{kind} as whole numbers")
    try:
        value = Decimal(text).scaleb(kind.scale)
    except InvalidOperation as error:
        raise Untranslatable(text) from error
    if value != value.to_integral_value() or not -(2**63) <= value < 2**63:
        raise Untranslatable(text)
    return int(value)
