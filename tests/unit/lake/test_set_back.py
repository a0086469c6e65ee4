"""M013: a published or admitted table that was set back by RESTORE is refused at the start."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import LongType, StructField, StructType

from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model.errors import CheckpointIncompatible
from rivermark.model.sink import Origin
from rivermark.model.table import Table
from rivermark.runtime.checkpoint.generation import check_not_set_back

TABLE = Table(
    name="test/windows", schema=StructType([StructField("n", LongType())]), description="w"
)


def test_m013_a_table_that_was_restored_lacks_the_rows_of_its_last_batch(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    origin = Origin("test/windows", 0, datetime(2024, 1, 1, tzinfo=UTC), "run")
    create_table(lake, TABLE)
    writer = TableWriter(lake, TABLE, origin)
    for batch in range(3):
        writer.append_once(pa.table({"n": [batch]}), batch)
    check_not_set_back(lake, TABLE, origin)
    table = DeltaTable(lake.path(TABLE))
    before = table.version()
    table.restore(before - 1)
    for _ in range(2):
        with pytest.raises(
            CheckpointIncompatible, match=rf"by a RESTORE \(version {before + 1}\).*of batch 2 and"
        ):
            check_not_set_back(lake, TABLE, origin)
        write_deltalake(lake.path(TABLE), pa.table({"n": [9]}), mode="append")

    table.update_incremental()
    table.restore(before)
    check_not_set_back(lake, TABLE, origin)


def test_files_that_are_joined_are_not_set_back(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    origin = Origin("test/windows", 0, datetime(2024, 1, 1, tzinfo=UTC), "run")
    create_table(lake, TABLE)
    writer = TableWriter(lake, TABLE, origin)
    for batch in range(3):
        writer.append_once(pa.table({"n": [batch]}), batch)
    DeltaTable(lake.path(TABLE)).optimize.compact()
    check_not_set_back(lake, TABLE, origin)


def test_m013_a_restore_behind_the_joining_of_files_takes_no_row(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    origin = Origin("test/windows", 0, datetime(2024, 1, 1, tzinfo=UTC), "run")
    create_table(lake, TABLE)
    writer = TableWriter(lake, TABLE, origin)
    for batch in range(3):
        writer.append_once(pa.table({"n": [batch]}), batch)
    table = DeltaTable(lake.path(TABLE))
    table.optimize.compact()
    joined = table.version()
    write_deltalake(lake.path(TABLE), pa.table({"n": [9]}), mode="append")
    table.update_incremental()
    table.restore(joined)
    check_not_set_back(lake, TABLE, origin)

    table.restore(2)
    with pytest.raises(CheckpointIncompatible, match="of batch 2 and"):
        check_not_set_back(lake, TABLE, origin)
