"""R01: a Delta source that was deleted and made again, or set back, is not read from the middle."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rivermark import RivermarkError
from rivermark.model.source import SourceReader, Split
from rivermark.sources import DeltaSource


def append(table: Path, versions: int) -> None:
    for number in range(versions):
        rows = pa.table({"id": [number]})
        feed = {"delta.enableChangeDataFeed": "true"} if not table.exists() else None
        write_deltalake(table, rows, mode="append", configuration=feed)


def reader_of(table: Path, changes: str, read: Sequence[Split] = ()) -> SourceReader:
    reader = DeltaSource(table=str(table), changes=changes).open("")  # type: ignore[arg-type]
    if read:
        reader.restore(lambda *names: [tuple(getattr(s, n) for n in names) for s in read])
    return reader


@pytest.mark.parametrize("changes", ["appends", "feed"])
@pytest.mark.parametrize("versions", [2, 6, 8])
def test_r01_a_table_that_was_made_again_is_refused(
    tmp_path: Path, changes: str, versions: int
) -> None:
    table = tmp_path / "elsewhere"
    append(table, 5)
    running = reader_of(table, changes)
    read = running.discover().ready
    running.planned(read)
    append(table, 1)
    more = running.discover().ready
    assert [split.name[-1] for split in more] == ["5"]
    running.planned(more)
    shutil.rmtree(table)
    append(table, versions)

    for reader in (reader_of(table, changes, [*read, *more]), running):
        with pytest.raises(
            RivermarkError,
            match="deleted and made again, or restored to an older version: version 5",
        ):
            reader.discover()


def test_r01_an_older_copy_that_is_put_back_and_goes_on_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "elsewhere"
    append(table, 2)
    shutil.copytree(table, tmp_path / "copy")
    append(table, 3)
    read = reader_of(table, "appends").discover().ready
    shutil.rmtree(table)
    shutil.copytree(tmp_path / "copy", table)
    with pytest.raises(RivermarkError, match="version 4, up to which it was read, is not there"):
        reader_of(table, "appends", read).discover()
    append(table, 5)
    with pytest.raises(RivermarkError, match="version 4, up to which it was read, is another one"):
        reader_of(table, "appends", read).discover()


def test_a_log_that_was_cleaned_behind_what_was_read_goes_on(tmp_path: Path) -> None:
    table = tmp_path / "elsewhere"
    append(table, 3)
    read = reader_of(table, "appends").discover().ready
    append(table, 2)
    DeltaTable(table).create_checkpoint()
    for version in range(3):
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    assert len(reader_of(table, "appends", read).discover().ready) == 2


def test_a_first_version_that_is_still_to_come_is_waited_for(tmp_path: Path) -> None:
    table = tmp_path / "elsewhere"
    append(table, 2)
    reader = DeltaSource(table=str(table), from_version=5).open("")
    assert reader.discover().ready == []
    append(table, 4)
    assert [split.name[-1] for split in reader.discover().ready] == ["5"]
