"""The schema of a table of records."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
import pytest

from rivermark.model.column_type import ColumnType, Record
from rivermark.model.ddl import struct_type
from rivermark.model.errors import DeclarationError
from rivermark.model.table import Daily, Table
from rivermark.process import Millis

Money = Annotated[Decimal, ColumnType("decimal(12,2)")]


class Place(msgspec.Struct):
    name: str
    cell: Annotated[int, ColumnType("int")]


class Alert(msgspec.Struct):
    key: str
    at: Millis
    since: Millis | None
    level: Literal["High", "Low"]
    total: Money
    share: float
    sure: bool
    body: bytes
    day: date
    seen: datetime
    number: int | None
    numbers: list[int]
    times: tuple[Millis, ...]
    fees: dict[str, Money | None]
    place: Place


def table_of(record: Any) -> Table:
    return Table.of(record, name="test/alerts", description="Alerts.")


def test_each_field_is_a_column_of_its_type() -> None:
    schema = table_of(Alert).schema

    assert schema.simpleString() == struct_type(
        "key string, at timestamp, since timestamp, level string, total decimal(12,2), "
        "share double, sure boolean, body binary, day date, seen timestamp, number long, "
        "numbers array<long>, times array<timestamp>, fees map<string, decimal(12,2)>, "
        "place struct<name: string, cell: int>"
    ).simpleString()  # fmt: skip
    assert all(column.nullable for column in schema)
    assert not schema["numbers"].dataType.containsNull  # type: ignore[attr-defined]
    assert schema["fees"].dataType.valueContainsNull  # type: ignore[attr-defined]


def test_the_rest_of_the_declaration_is_that_of_any_table() -> None:
    declared = {
        "event_time": "at",
        "keys": ("key", "at"),
        "days": Daily("at", date(2024, 1, 1)),
        "personal": ("key",),
    }
    derived = Table.of(Alert, name="test/alerts", description="Alerts.", **declared)  # type: ignore[arg-type]

    assert derived == Table(
        name="test/alerts",
        schema=derived.schema,
        description="Alerts.",
        **declared,  # type: ignore[arg-type]
    )
    with pytest.raises(DeclarationError, match="has no column 'id'"):
        Table.of(Alert, name="test/alerts", description="Alerts.", keys=("id",))


class Fare(Record):
    """What a ride cost.

    Refunds are fares below zero.
    """

    ride: int
    total: Annotated[Decimal, ColumnType("decimal(12,2)"), "In USD."]
    tip: Annotated[float | None, "In USD, of cards alone."] = None


def test_a_record_describes_its_table_and_its_columns() -> None:
    fares = Table.of(Fare, name="test/fares")

    assert fares.description == "What a ride cost."
    comments = [field.metadata for field in fares.schema]
    assert comments == [{}, {"comment": "In USD."}, {"comment": "In USD, of cards alone."}]
    assert fares.schema["total"].dataType.simpleString() == "decimal(12,2)"
    assert Table.of(Fare, name="test/fares", description="Fares.").description == "Fares."


@pytest.mark.parametrize("hint", [Decimal, object, int | str, list, tuple[int, str]])
def test_a_field_without_a_column_type_is_refused_by_name(hint: Any) -> None:
    record = msgspec.defstruct("Odd", [("fine", int), ("odd", hint)])

    with pytest.raises(DeclarationError, match="field 'odd' of Odd: no column type is known for"):
        table_of(record)
