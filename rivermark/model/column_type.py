"""Records that are stored, and the storage type of a field whose Python type does not say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import dataclass_transform

import msgspec


@dataclass(frozen=True)
class ColumnType:
    """The column type of a field, as DDL text, for `typing.Annotated`.

        Money = Annotated[Decimal, ColumnType("decimal(12,2)")]

    A whole number of milliseconds since the epoch (UTC) with the type `timestamp` is stored as a
    timestamp; `rivermark.process.Millis` is that type.
    """

    ddl: str


@dataclass_transform(frozen_default=True)
class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row as a value: events, results and state of process functions.

        class LongRide(Record):
            ride_id: int
            alert_time: Annotated[Millis, "When the ride had lasted two hours (UTC)."]

    A frozen `msgspec.Struct` that is encoded as a list and left alone by the garbage collector. Its
    docstring describes the table of its rows, and a text beside a field's type its column.
    """
