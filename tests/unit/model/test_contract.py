"""Contracts as values: what a declaration refuses."""

from __future__ import annotations

from datetime import datetime

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    LongType,
    StringType,
    TimestampType,
)

from rivermark.model.contract import Contract, Field, Rule
from rivermark.model.errors import DeclarationError
from rivermark.model.field_readers import epoch_millis, sql

ID = Field("id", LongType(), required=True)
AT = Field("at", TimestampType(), required=True)


def refused(message: str) -> pytest.RaisesExc[DeclarationError]:
    return pytest.raises(DeclarationError, match=message)


def contract(*fields: Field, **more: object) -> Contract:
    return Contract(fields=fields or (ID, AT), **({"event_time": "at"} | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "time",
    [
        Field("at", TimestampType()),
        Field("at", StringType(), required=True),
        Field("when", TimestampType(), required=True),
    ],
)
def test_an_event_time_that_may_be_missing_or_is_none_is_refused(time: Field) -> None:
    with refused("event time 'at' must be a required timestamp field"):
        contract(ID, time)


def test_two_fields_of_one_name_are_refused_whatever_the_letter_case() -> None:
    with refused("two fields have one name"):
        contract(ID, AT, Field("ID", LongType()))


@pytest.mark.parametrize("name", ["flags", "Payload", "_row", "_anything"])
def test_a_field_named_like_a_column_of_the_platform_is_refused(name: str) -> None:
    with refused("the platform has a column of that name"):
        contract(ID, AT, Field(name, StringType()))


@pytest.mark.parametrize("name", ["a.b", "a`b", "*", ""])
def test_n016_a_field_name_that_the_engine_cannot_resolve_is_refused(name: str) -> None:
    with refused("no column in Spark can have that name"):
        contract(ID, AT, Field(name, StringType()))
    # What a source calls it may be anything.
    assert contract(ID, AT, Field("other", StringType(), (name,))).fields[2].names == (name,)


def test_n024_the_earliest_event_time_has_a_zone() -> None:
    with refused("has no time zone"):
        contract(earliest=datetime(2006, 1, 1))  # noqa: DTZ001 - that is the fault


@pytest.mark.parametrize("kind", [DateType(), ArrayType(StringType())])
def test_a_type_that_no_reader_reads_is_refused_unless_one_is_given(kind: DataType) -> None:
    with refused("no reader for"):
        contract(ID, AT, Field("day", kind))
    with refused("its reader reads timestamp"):
        contract(ID, AT, Field("day", kind, read=epoch_millis()))
    day = Field("day", kind, read=sql("CAST(text AS DATE)"))
    if isinstance(kind, DateType):
        assert contract(ID, AT, day).fields[2].type == kind
    else:
        with refused("its reader reads single values"):
            contract(ID, AT, day)


def test_a_key_that_may_be_missing_is_refused() -> None:
    with refused("key 'id' must be a required field"):
        contract(Field("id", LongType()), AT, keys=("id",))
    with refused("key 'ride' must be a required field"):
        contract(keys=("ride",))


def test_two_rules_of_one_name_are_refused() -> None:
    rule = Rule("odd", "false", "flag", "Odd.")
    with refused("two rules have one name"):
        contract(rules=(rule, rule))


def test_admitted_rows_carry_their_flags_and_where_they_came_from() -> None:
    names = contract(ID, AT, Field("fare", DecimalType(12, 2))).admitted_schema().fieldNames()

    assert names == ["id", "at", "fare", "flags", "_file", "_row", "_ingest_batch", "_ingested_at"]
    late = contract().late_schema().fieldNames()
    assert late[-2:] == ["_watermark", "_late_by_ms"]
