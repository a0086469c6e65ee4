"""Rows by a column, in memory and from files that are larger than it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from rivermark.lake.append.table_features import features_for
from rivermark.lake.append.table_files import TableFiles
from rivermark.lake.rows_in_files import InFiles
from rivermark.model.rows import BatchRows, Collected
from rivermark.sinks import python_rows as ordering
from rivermark.sinks.python_rows import in_order
from tests.unit.sinks.conftest import FARES, NOON, fares


def in_files(folder: Path, rows: pa.Table) -> InFiles:
    files = TableFiles(str(folder), features_for(rows.schema), {})
    adds = [add for n in range(rows.num_rows) for add in files.write(rows.slice(n, 1))]
    return InFiles(str(folder), FARES, adds)


@pytest.mark.parametrize("large", [False, True], ids=["in memory", "in files"])
def test_rows_come_by_the_column_and_without_a_value_last(
    tmp_path: Path, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "PIECE", 2)
    minutes = (7, 3, 9, 1, 5)
    parts = [fares((n, 1.0), at=NOON + timedelta(minutes=n)) for n in minutes]
    nothing = fares((0, 1.0)).set_column(1, "at", pa.nulls(1, pa.timestamp("us", "UTC")))
    rows = pa.concat_tables([*parts, nothing])
    batch: BatchRows = in_files(tmp_path, rows) if large else Collected(rows)

    pieces = [*in_order(batch, ["ride", "at"], "at")]
    assert [r for piece in pieces for r in piece["ride"].to_pylist()] == [1, 3, 5, 7, 9, 0]
    assert {tuple(piece.column_names) for piece in pieces} == {("ride", "at")}
