"""Rows as JSON lines: instants in UTC with a Z, decimals as exact numbers."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

import msgspec

Value = str | int | float | bool | Decimal | datetime | None

_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")


def json_line(row: Mapping[str, Value]) -> str:
    """One flat row as a JSON object on one line, fields in the row's order, no line end.

    A decimal keeps its digits (12.50 stays 12.50) and never passes through a float; a float has the
    fewest digits that read back to the same double. ValueError for a time without zone, and for a
    number that JSON does not have (NaN, infinities).
    """
    return _ENCODER.encode({name: _plain(name, value) for name, value in row.items()}).decode()


def utc_text(instant: datetime) -> str:
    """The instant as ISO-8601 in UTC: 2020-01-01T12:00:00.000Z, six digits where it needs them.

    ValueError for a time without zone.
    """
    if instant.tzinfo is None:
        raise ValueError(f"the time {instant.isoformat()} has no zone")
    precision = "microseconds" if instant.microsecond % 1000 else "milliseconds"
    text = instant.astimezone(UTC).isoformat(timespec=precision)
    return text.removesuffix("+00:00") + "Z"


def _plain(name: str, value: Value) -> Value:
    if isinstance(value, datetime):
        return utc_text(value)
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        # The encoder would write null, and a wrong number would turn into a missing one.
        raise ValueError(f"{name} is {value}, which JSON cannot say")
    return value
