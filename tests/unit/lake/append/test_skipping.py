"""Readers without an engine skip files by the statistics, and never one that holds a row."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, write_deltalake

from rivermark.lake.append.delta_commit import DeltaCommitter
from tests.growing_rows import growing

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("fare", pa.decimal128(12, 2)),
        ("large", pa.decimal128(38, 4)),
        ("degrees", pa.float64()),
        ("zone", pa.string()),
    ]
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    """Ten commits of ten rows each."""
    path = str(tmp_path_factory.mktemp("lake") / "seen")
    write_deltalake(path, SCHEMA.empty_table())
    appender = DeltaCommitter(path)
    for first in range(0, 100, 10):
        rows = [growing(n) for n in range(first, first + 10)]
        assert appender.append(pa.Table.from_pylist(rows, SCHEMA), {})
    return DeltaTable(path)


@pytest.mark.parametrize("column", SCHEMA.names)
def test_no_row_is_skipped_that_a_filter_asks_for(table: DeltaTable, column: str) -> None:
    dataset = table.to_pyarrow_dataset()
    kind = SCHEMA.field(column).type
    for n in (0, 9, 10, 55, 99):
        value = pa.scalar(growing(n)[column], kind)
        assert dataset.to_table(filter=ds.field(column) == value).num_rows == 1
        assert dataset.to_table(filter=ds.field(column) >= value).num_rows == 100 - n
        assert dataset.to_table(filter=ds.field(column) < value).num_rows == n


def test_duckdb_reads_the_same(table: DeltaTable) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("seen", table.to_pyarrow_dataset())
        found = connection.execute('SELECT count(*), max("at"), sum(fare) FROM seen').fetchone()

    assert found == (100, growing(99)["at"], Decimal("49.50"))
