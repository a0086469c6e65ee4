"""Files that delta-rs writes of rows with NaN or infinity have no bounds to skip them by."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.delta import dataset_of
from rivermark.lake.maintenance.compaction import compact
from rivermark.lake.unbounded import UNBOUNDED, writer_options

ODD = [math.nan, math.inf, -math.inf]


def table_of(path: Path, *files: pa.Table) -> DeltaTable:
    """A table with those files by our own writer."""
    write_deltalake(str(path), files[0].schema.empty_table())
    committer = DeltaCommitter(str(path))
    for rows in files:
        assert committer.append(rows, {})
    return DeltaTable(str(path))


def bounded(path: Path) -> list[bool]:
    """Of each column of the newest version's files: whether the file has bounds of it."""
    actions = pa.table(DeltaTable(str(path)).get_add_actions())
    columns = [pq.read_metadata(path / name).row_group(0) for name in actions["path"].to_pylist()]
    return [c.column(i).statistics is not None for c in columns for i in range(c.num_columns)]


@pytest.mark.parametrize("odd", ODD)
def test_rows_with_odd_numbers_are_written_without_bounds(tmp_path: Path, odd: float) -> None:
    plain = pa.table({"id": [1], "v": [1.0], "p": [{".x": 2.0}]})
    table = table_of(tmp_path, plain)

    assert writer_options(table) == {}
    assert writer_options(table, plain) == {}
    for rows in (
        pa.table({"id": [1], "v": [odd]}),
        pa.table({"p": [{".x": 1.0}, {".x": odd}], "v": [None, None]}),
    ):
        assert writer_options(table, rows) == {"writer_properties": UNBOUNDED}


def test_a_table_without_such_columns_or_values_is_written_as_ever(tmp_path: Path) -> None:
    texts = table_of(tmp_path / "texts", pa.table({"id": [1], "v": ["NaN"]}))
    nulls = table_of(tmp_path / "nulls", pa.table({"v": pa.array([None], pa.float64())}))

    assert writer_options(texts) == {}
    assert writer_options(nulls) == {}


def test_files_that_are_joined_stay_without_bounds(tmp_path: Path) -> None:
    files = [pa.table({"id": [i], "v": [math.nan if i == 3 else float(i)]}) for i in range(9)]
    table_of(tmp_path, *files)

    assert compact(str(tmp_path), [], "run")[0] == 9
    (joined,) = pa.table(DeltaTable(str(tmp_path)).get_add_actions(flatten=True)).to_pylist()
    assert {joined[f"{end}.{name}"] for end in ("min", "max") for name in ("id", "v")} == {None}
    for rows in (
        dataset_of(DeltaTable(str(tmp_path))),
        DeltaTable(str(tmp_path)).to_pyarrow_dataset(),
    ):
        assert sorted(rows.to_table()["id"].to_pylist()) == [*range(9)]
    assert compact(str(tmp_path), [], "run")[0] == 0
