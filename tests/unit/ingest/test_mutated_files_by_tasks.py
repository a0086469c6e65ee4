"""Mutated files, cut into small pieces for tasks, become the rows that the driver makes of them.

RIVERMARK_FUZZ_SEED is the first seed, 1 by default, and RIVERMARK_FUZZ_ROUNDS how many there are.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.oracles.mutations import land_mutated
from tests.unit.ingest.test_admission_by_tasks import World, numbered
from tests.unit.ingest.test_mutated_files import INGEST

SEED = int(os.environ.get("RIVERMARK_FUZZ_SEED", "1"))
ROUNDS = int(os.environ.get("RIVERMARK_FUZZ_ROUNDS", "1"))
FILES = 40
OF_RUN = ("_ingested_at", "_landed_at")
EVENTS = replace(INGEST, lateness=timedelta(minutes=1))


def rows(world: World) -> dict[str, list[str]]:
    """Every row of the ingest's tables, without the moments at which a run wrote it."""
    found = {}
    for table in world.ingest.tables:
        each = DeltaTable(world.lake.path(table)).to_pyarrow_table()
        kept = [name for name in each.column_names if name not in OF_RUN]
        columns = {name: _plain(each[name]) for name in kept}
        found[table.name] = sorted(map(str, pa.table(columns).to_pylist()))
    return found


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Moments as numbers: some lie beyond the years that Python has."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


@pytest.mark.parametrize("piece", [400, pytest.param(4_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_mutated_files_are_the_same_rows_by_driver_and_tasks(
    seed: int, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rivermark.ingest.admission.PIECE_BYTES", piece)
    monkeypatch.setattr("rivermark.ingest.admission.numbered", numbered)
    driver, tasks = (World(tmp_path / n, EVENTS, n == "tasks") for n in ("driver", "tasks"))
    land_mutated(driver.root / "landing" / "in", seed, FILES)
    shutil.copytree(driver.root, tasks.root)

    assert tasks.run() == driver.run()
    by_tasks, by_driver = rows(tasks), rows(driver)
    for name, expected in by_driver.items():
        assert by_tasks[name] == expected, name
    assert all(by_driver.values())
