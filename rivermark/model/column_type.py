"""Storage type of a record's field, where its Python type alone does not say it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ColumnType:
    """The column type of a field, as DDL text, for `typing.Annotated`.

        Money = Annotated[Decimal, ColumnType("decimal(12,2)")]

    A whole number of milliseconds since the epoch (UTC) with the type `timestamp` is stored as a
    timestamp; `rivermark.process.Millis` is that type.
    """

    ddl: str
