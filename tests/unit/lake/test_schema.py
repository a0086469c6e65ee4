"""Tables come into being as declared, and only grow."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark.lake.lake import Lake
from rivermark.lake.schema import arrow_schema, create_table
from rivermark.model.errors import TableSchemaMismatch
from rivermark.model.table import Table
from tests.unit.lake.conftest import RIDES


def table(*columns: tuple[str, DataType]) -> Table:
    schema = StructType([StructField(name, kind) for name, kind in columns])
    return Table(name="test/fares", schema=schema, description="Fares.")


MONEY, TEXT = DecimalType(12, 2), StringType()


def test_a_table_is_created_once_with_its_schema_name_and_retention(lake: Lake) -> None:
    declared = table(("fare", MONEY), ("at", TimestampType()), ("flags", ArrayType(TEXT)))
    create_table(lake, declared)
    create_table(lake, declared)

    found = DeltaTable(lake.path(declared))
    assert found.version() == 0
    assert found.metadata().name == "test.fares"
    kept = found.metadata().configuration
    assert kept["delta.logRetentionDuration"] == kept["delta.deletedFileRetentionDuration"]
    assert [f.name for f in found.schema().fields] == ["fare", "at", "flags"]


def test_a_declared_column_that_the_table_lacks_is_added(lake: Lake) -> None:
    create_table(lake, table(("fare", MONEY)))
    create_table(lake, table(("fare", MONEY), ("tip", MONEY), ("note", TEXT)))

    found = DeltaTable(lake.path("test/fares"))
    assert [f.name for f in found.schema().fields] == ["fare", "tip", "note"]
    assert found.version() == 1


def test_a_retyped_column_is_refused_with_both_types_and_a_way_out(lake: Lake) -> None:
    create_table(lake, table(("fare_amount", DoubleType()), ("id", LongType())))

    with pytest.raises(TableSchemaMismatch) as refused:
        create_table(lake, table(("fare_amount", TEXT), ("id", LongType())))
    message = str(refused.value)
    assert "'test/fares'" in message
    assert "fare_amount: double on disk, string declared" in message
    assert "rebuild" in message


def test_a_removed_or_renamed_column_is_refused(lake: Lake) -> None:
    create_table(lake, table(("fare", MONEY), ("tip", MONEY)))

    with pytest.raises(TableSchemaMismatch, match="tip: no longer declared"):
        create_table(lake, table(("fare", MONEY), ("gratuity", MONEY)))
    assert [f.name for f in DeltaTable(lake.path("test/fares")).schema().fields] == ["fare", "tip"]


def test_a_wider_decimal_is_another_type(lake: Lake) -> None:
    create_table(lake, table(("fare", MONEY)))

    with pytest.raises(TableSchemaMismatch, match=r"decimal\(12,2\) on disk"):
        create_table(lake, table(("fare", DecimalType(14, 2))))


def test_the_order_of_columns_is_no_difference(lake: Lake) -> None:
    create_table(lake, table(("fare", MONEY), ("tip", MONEY)))
    create_table(lake, table(("tip", MONEY), ("fare", MONEY)))

    assert DeltaTable(lake.path("test/fares")).version() == 0
    assert lake.exists(RIDES)


def test_an_arrow_schema_follows_from_the_declared_columns() -> None:
    declared = table(("fare", MONEY), ("at", TimestampType()), ("flags", ArrayType(TEXT)))

    assert arrow_schema(declared.schema) == pa.schema(
        [
            ("fare", pa.decimal128(12, 2)),
            ("at", pa.timestamp("us", "UTC")),
            ("flags", pa.list_(pa.string())),
        ]
    )
