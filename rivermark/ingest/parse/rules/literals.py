"""Constants of a condition, as the JSON of Spark's plan writes them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rivermark.ingest.parse.rules.vector import Type, Untranslatable, Vector, type_of

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def literal(kind: str, text: str | None) -> Vector:
    """A constant, which stands for every row.

    Raises:
        Untranslatable: a null of no type, or a type that is not held here.
    """
    held = type_of(kind)
    if held.kind == "text":
        return Vector(held, pa.array([text or ""], pa.string()), _valid(text))
    value = 0 if text is None else _value(held, text)
    return Vector(held, np.array([value], held.dtype), _valid(text))


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
