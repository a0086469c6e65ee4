"""DDL text as types and schemas, without a Spark session."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark.model.contract import Field
from rivermark.model.ddl import data_type, struct_type
from rivermark.model.errors import DeclarationError
from rivermark.model.table import Table


def test_columns_are_read_in_order_with_nullability_and_comment() -> None:
    text = "id long NOT NULL, at TIMESTAMP, tip decimal(12,2) COMMENT 'In dollars, the driver\\'s'"

    assert struct_type(text) == StructType(
        [
            StructField("id", LongType(), False),
            StructField("at", TimestampType()),
            StructField("tip", DecimalType(12, 2), True, {"comment": "In dollars, the driver's"}),
        ]
    )


def test_types_nest() -> None:
    text = "array<struct<node: int, fees: map<string, decimal(3,1)>>>"

    assert data_type(text) == ArrayType(
        StructType(
            [
                StructField("node", IntegerType()),
                StructField("fees", MapType(StringType(), DecimalType(3, 1))),
            ]
        )
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("id long, tip money", "column 'tip': unknown type 'money'"),
        ("id long tip", "column 'id': 'tip' is not expected"),
        ("tip decimal(3,4)", "column 'tip': decimal\\(3,4\\): expected scale <= precision <= 38"),
        ("tip decimal(12)", "column 'tip': expected ',', not '\\)'"),
        ("ids array<long", "column 'ids': expected '>', not the end"),
        ("id long NOT", "column 'id': expected 'NULL', not the end"),
        ("id long COMMENT id", "column 'id': expected a comment in single quotes"),
        ("id long, id int", "two columns named 'id'"),
        ("id long, ", "expected a column"),
        ("", "expected a column"),
        ("id long; at timestamp", "'; at timestamp' is no DDL"),
    ],
)
def test_other_text_is_refused_with_its_column(text: str, problem: str) -> None:
    with pytest.raises(DeclarationError, match=problem):
        struct_type(text)


def test_a_table_and_a_field_take_text_and_name_themselves_in_its_error() -> None:
    table = Table(name="test/tips", schema="tip decimal(12,2)", description="Tips.")
    assert table.schema == StructType([StructField("tip", DecimalType(12, 2))])
    assert Field("tip", "decimal(12,2)").type == DecimalType(12, 2)

    with pytest.raises(DeclarationError, match="table 'test/tips': column 'tip': unknown type"):
        Table(name="test/tips", schema="tip money", description="Tips.")
    with pytest.raises(DeclarationError, match="field 'tip': unknown type 'money'"):
        Field("tip", "money")
