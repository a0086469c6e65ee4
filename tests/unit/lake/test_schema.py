"""Tables come into being as declared, and only grow."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
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

from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
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


def test_m018_a_decimal_that_is_declared_wider_takes_the_rows_over(lake: Lake) -> None:
    create_table(lake, table(("fare", MONEY), ("note", TEXT)))
    path = lake.path("test/fares")
    rows = pa.table({"fare": pa.array([Decimal("9999999999.99"), None], pa.decimal128(12, 2))})
    write_deltalake(path, rows.append_column("note", pa.array(["a", "b"])), mode="append")
    create_table(lake, table(("fare", DecimalType(22, 2)), ("note", TEXT)))
    create_table(lake, table(("fare", DecimalType(22, 2)), ("note", TEXT)))

    delta = DeltaTable(path)
    assert delta.version() == 2
    assert delta.metadata().configuration["delta.checkpointInterval"] == "50"
    kept = delta.to_pyarrow_table().sort_by("note")
    assert kept.schema.field("fare").type == pa.decimal128(22, 2)
    assert kept["fare"].to_pylist() == [Decimal("9999999999.99"), None]
    for narrower in (MONEY, DecimalType(22, 4)):
        with pytest.raises(TableSchemaMismatch, match=r"decimal\(22,2\) on disk"):
            create_table(lake, table(("fare", narrower), ("note", TEXT)))


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


def test_m015_a_column_of_another_tool_is_named_as_one(lake: Lake) -> None:
    create_table(lake, table(("fare", MONEY)))
    added = pa.table({"fare": pa.array([], pa.decimal128(12, 2)), "remark": pa.array([], "string")})
    write_deltalake(lake.path("test/fares"), added, mode="append", schema_mode="merge")

    with pytest.raises(TableSchemaMismatch, match=r"remark: .*added by another tool"):
        create_table(lake, table(("fare", MONEY)))


def test_a_wide_table_is_skipped_by_the_ingest_batch_too(lake: Lake) -> None:
    wide = [(f"column_{n}", TEXT) for n in range(15)]
    declared = table(*wide, ("_ingest_batch", LongType()))
    create_table(lake, declared)
    path = lake.path(declared)
    for batch in range(3):
        rows = pa.table({"column_14": ["x"], "_ingest_batch": pa.array([batch], pa.int64())})
        assert DeltaCommitter(path).append(rows, {})

    files = pa.table(DeltaTable(path).get_add_actions(flatten=True))
    assert sorted(files["min._ingest_batch"].to_pylist()) == [0, 1, 2]
    assert "min.column_11" in files.column_names
    assert "min.column_12" not in files.column_names
