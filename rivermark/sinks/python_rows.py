"""Rows as Python objects, also where they have times that Python has not: beyond the year 9999."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyarrow import types

PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
DAY_SECONDS: Final = 86_400
ERA_DAYS: Final = 146_097
"""Days of four hundred years of the calendar."""
ERA_BEGINS: Final = 719_468
"""Days from March 1st of the year 0 to 1970."""


class FarTime(NamedTuple):
    """A time (UTC) or a date, whose `clock` is None, of any year; the year 0 is 1 BC."""

    year: int
    month: int
    day: int
    clock: str | None


Spell = Callable[[FarTime], str]


def python_rows(rows: pa.Table | pa.RecordBatch, spell: Spell) -> list[dict[str, Any]]:
    """The rows; in place of times that Python has not, however deep, stands what `spell` says."""
    try:
        objects: list[dict[str, Any]] = rows.to_pylist()
    except (OverflowError, ValueError):
        columns = [[_value(each, spell) for each in column] for column in rows.columns]
        return [
            dict(zip(rows.column_names, row, strict=True)) for row in zip(*columns, strict=True)
        ]
    return objects


def iso_8601(time: FarTime) -> str:
    """As Spark writes it in JSON: a year beyond 9999 has a sign."""
    year = f"{'+' if time.year > 9999 else ''}{time.year:0{5 if time.year < 0 else 4}d}"
    date = f"{year}-{time.month:02d}-{time.day:02d}"
    return date if time.clock is None else f"{date}T{time.clock}Z"


def _value(scalar: pa.Scalar, spell: Spell) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        kind = scalar.type
    if types.is_timestamp(kind):
        seconds, rest = divmod(scalar.value, PER_SECOND[kind.unit])
        days, second = divmod(seconds, DAY_SECONDS)
        clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        micros = rest * 1_000_000 // PER_SECOND[kind.unit]
        return spell(FarTime(*_calendar(days), f"{clock}.{micros:06d}" if micros else clock))
    if types.is_date(kind):
        return spell(FarTime(*_calendar(scalar.cast(pa.date32()).value), None))
    if types.is_struct(kind):
        return {name: _value(each, spell) for name, each in scalar.items()}
    if types.is_map(kind):
        parts = [[_value(each, spell) for each in scalar.values.field(n)] for n in (0, 1)]
        return [*zip(*parts, strict=True)]
    return [_value(each, spell) for each in scalar.values]


def _calendar(days: int) -> tuple[int, int, int]:
    """Year, month and day of so many days since 1970; years are counted from March on."""
    era, day = divmod(days + ERA_BEGINS, ERA_DAYS)
    year = (day - day // 1_460 + day // 36_524 - day // (ERA_DAYS - 1)) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (month <= 2), month, day + 1
