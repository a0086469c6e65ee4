"""A full disk: the error names the path, nothing half written stays, and the heartbeat says it."""

from __future__ import annotations

import errno
import os
import random
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from py4j.protocol import Py4JError

from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.filesystem import write_file
from rivermark.lake.full_disk import full_path, is_disk_full, naming
from rivermark.lake.integrity.sidecar import write_sidecar
from rivermark.runtime.supervision.error_classes import explain
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from tests.small_disk import small_disk

FULL = OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space left")
JAVA = Py4JError("org.apache.spark.SparkException: Job aborted\nNo space left on device")
RUST = OSError(
    "Generic LocalFileSystem error: Unable to open file /lake/a/b.parquet: (os error 28)"
)


@pytest.mark.parametrize("error", [FULL, JAVA, RUST, OSError(errno.EDQUOT, "quota")])
def test_a_full_disk_is_told_whoever_says_it(error: Exception) -> None:
    outer = RuntimeError("the batch failed")
    outer.__cause__ = error

    assert is_disk_full(error)
    assert is_disk_full(outer)


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), ValueError("28")])
def test_other_errors_are_no_full_disk(error: Exception) -> None:
    assert not is_disk_full(error)
    with pytest.raises(type(error)), naming("/lake"):
        raise error


def test_the_sentence_has_the_path_that_was_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="/lake/file") as named, naming("/lake/file"):
        raise FULL

    assert full_path(named.value) == "/lake/file"
    assert full_path(RUST) == "/lake/a/b.parquet"
    assert full_path(JAVA, tmp_path) in (str(tmp_path), tempfile.gettempdir())
    fault = explain(named.value)
    assert fault.message.startswith("the disk of /lake/file is full; ")
    assert fault.restartable


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path, "512k") as folder:
        yield folder


def fill(disk: Path, *, but: int = 0) -> Path:
    """Take all the space but so many bytes."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            file.truncate(max(filler.stat().st_size - but, 0))
    return filler


def test_a_draft_does_not_keep_the_space_that_is_missing(disk: Path) -> None:
    fill(disk)

    with pytest.raises(OSError, match=r"state\.json"):
        write_file(str(disk / "state.json"), b"x" * 9_000)

    assert sorted(each.name for each in disk.iterdir()) == ["filler"]


def test_a_checksum_file_that_finds_no_space_leaves_no_draft(disk: Path) -> None:
    checkpoint = disk / "checkpoint.parquet"
    checkpoint.write_bytes(b"x" * 9_000)
    fill(disk)

    with pytest.raises(OSError, match=r"\.checkpoint\.parquet\.crc"):
        write_sidecar(checkpoint)

    assert sorted(each.name for each in disk.iterdir()) == ["checkpoint.parquet", "filler"]


def test_a_heartbeat_says_so_on_the_disk_that_is_full(disk: Path) -> None:
    store = HeartbeatStore(disk / "state")
    beat = Heartbeat(stream="web/clicks", group="web", run_id="r", pid=os.getpid(), state="running")
    store.beat(beat)
    fill(disk)

    store.beat(replace(beat, state="failed", error="the disk of /lake is full; free space there"))
    assert store.latest()["web/clicks"].error == "the disk of /lake is full; free space there"
    store.beat(replace(beat, state="stopped"))
    assert store.latest()["web/clicks"] == replace(beat, state="stopped")


def test_rows_are_appended_once_whenever_the_disk_was_full(disk: Path) -> None:
    chance = random.Random(8)
    table = disk / "table"
    write_deltalake(str(table), pa.table({"batch": pa.array([], pa.int64())}))
    refused = []
    for batch in range(30):
        rows = pa.table({"batch": pa.array([batch] * 20, pa.int64())})
        filler = fill(disk, but=chance.randrange(0, 20_000, 1_000))
        try:
            assert DeltaCommitter(str(table)).append(rows, {})
        except OSError as error:
            refused.append(explain(error, checkpoint=str(disk)).message)
        filler.unlink()
        if batch not in batches(table):
            assert DeltaCommitter(str(table)).append(rows, {})

    assert len(refused) > 5
    assert all(f"the disk of {disk}" in message for message in refused)
    assert batches(table) == [batch for batch in range(30) for _ in range(20)]
    assert [each for each in table.rglob(".*") if each.suffix == ".tmp"] == []
    named = {Path(each).name for each in DeltaTable(str(table)).file_uris()}
    assert {each.name for each in table.glob("*.parquet")} == named


def batches(table: Path) -> list[int]:
    return sorted(DeltaTable(str(table)).to_pyarrow_table()["batch"].to_pylist())
