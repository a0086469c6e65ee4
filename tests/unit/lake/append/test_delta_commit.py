"""A log entry written by hand is what delta-rs would have written, whoever commits beside it."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.schema import Field, PrimitiveType

from rivermark.lake.append import delta_commit
from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.snapshot import row_count
from rivermark.lake.statistics import largest, smallest
from tests.unit.lake.conftest import NOON, RIDES, Foreign, ids, rides


@pytest.fixture
def path(lake: Lake) -> str:
    return lake.path(RIDES)


def test_the_rows_the_note_and_the_statistics_are_in_the_table(lake: Lake, path: str) -> None:
    before = datetime.now(UTC)
    assert DeltaCommitter(path).append(rides(1, 2), {"batch": 7})

    newest = CommitLog(path).latest()
    assert newest is not None
    assert (newest.metadata, newest.rows, newest.operation) == ({"batch": 7}, 2, "WRITE")
    assert before.timestamp() - 1 <= newest.at.timestamp() <= datetime.now(UTC).timestamp()
    assert ids(lake) == [1, 2]
    assert (smallest(lake, RIDES, "at"), largest(lake, RIDES, "at")) == (NOON, NOON)
    assert row_count(lake, RIDES) == 2


def test_the_checksum_is_the_one_of_the_state(path: str, foreign: Foreign) -> None:
    appender = DeltaCommitter(path)
    for n in range(3):
        appender.append(rides(n), {})
        version = DeltaTable(path).version()
        file = Path(path, "_delta_log", f"{version:020d}.crc")
        ours = file.read_text()
        file.unlink()
        assert write_checksum(path, version)
        assert json.loads(ours) == json.loads(file.read_text())
        foreign()


def test_a_version_that_somebody_took_in_the_last_moment_stays_his(
    lake: Lake, path: str, foreign: Foreign, monkeypatch: pytest.MonkeyPatch
) -> None:
    appender = DeltaCommitter(path)
    link, waiting = os.link, [foreign, foreign]

    def late(source: Any, target: Any) -> None:
        if waiting:
            waiting.pop()()
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    assert appender.append(rides(1), {})

    assert ids(lake) == [-1, -1, 1]
    assert not list(Path(path, "_delta_log").glob(".*.tmp"))


def test_columns_that_change_in_the_last_moment_are_not_guessed(
    lake: Lake, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    appender = DeltaCommitter(path)
    link, waiting = os.link, [Field("n", PrimitiveType("long"))]

    def late(source: Any, target: Any) -> None:
        if waiting:
            DeltaTable(path).alter.add_columns(waiting.pop())
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    assert not appender.append(rides(1), {})
    assert ids(lake) == []
    assert appender.append(rides(1), {})
    assert DeltaTable(path).to_pyarrow_table()["n"].to_pylist() == [None]


def test_a_log_cleaned_past_what_was_known_is_read_anew(
    lake: Lake, path: str, foreign: Foreign
) -> None:
    appender = DeltaCommitter(path)
    appender.append(rides(1), {})
    for _ in range(4):
        foreign()
    write_checksum(path, DeltaTable(path).version())
    DeltaTable(path).create_checkpoint()
    for version in range(4):
        Path(path, "_delta_log", f"{version:020}.json").unlink()

    assert appender.append(rides(2), {})
    assert DeltaTable(path).version() == 6
    assert ids(lake) == [-1, -1, -1, -1, 1, 2]


def test_table_checkpoints_are_made_as_the_table_says(lake: Lake, path: str) -> None:
    DeltaTable(path).alter.set_table_properties({"delta.checkpointInterval": "5"})
    appender = DeltaCommitter(path)
    for n in range(11):
        assert appender.append(rides(n), {})

    assert CommitLog(path).checkpoints() == [5, 10]
    assert ids(lake) == list(range(11))


def test_no_rows_are_a_commit_without_a_file(path: str) -> None:
    assert DeltaCommitter(path).append(rides(), {"batch": 1})

    assert DeltaTable(path).version() == 1
    assert DeltaTable(path).file_uris() == []


def test_rows_that_lack_a_column_and_rows_in_another_order(path: str) -> None:
    appender = DeltaCommitter(path)
    assert appender.append(rides(1).select(["at", "id"]), {})
    assert appender.append(rides(2).select(["id"]), {})

    found = DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist()
    assert found == [{"id": 1, "at": NOON}, {"id": 2, "at": None}]


def test_inner_values_that_spark_says_are_never_missing_fit(tmp_path: Path) -> None:
    inner = pa.struct([pa.field("x", pa.int64()), pa.field("l", pa.list_(pa.string()))])
    columns = pa.schema([("p", inner), ("m", pa.map_(pa.string(), pa.int64()))])
    write_deltalake(str(tmp_path), columns.empty_table())
    never = pa.field("element", pa.string(), nullable=False)
    strict = pa.struct([pa.field("x", pa.int64(), nullable=False), pa.field("l", pa.list_(never))])
    rows = pa.table({"p": pa.array([{"x": 1, "l": ["a"]}], strict)})

    assert DeltaCommitter(str(tmp_path)).append(rows, {})
    found = DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist()
    assert found == [{"p": {"x": 1, "l": ["a"]}, "m": None}]


@pytest.mark.parametrize(
    "rows",
    [
        rides(1).append_column("more", pa.array([1])),
        rides(1).set_column(0, "id", pa.array([1.5])),
        rides(1).set_column(1, "at", pa.array([NOON.replace(tzinfo=None)])),
        rides(1).append_column("id", pa.array([2], pa.int64())),
    ],
    ids=["a column too many", "another type", "without a zone", "a name twice"],
)
def test_rows_of_another_shape_are_left_to_delta_rs(path: str, rows: pa.Table) -> None:
    assert not DeltaCommitter(path).append(rows, {})
    assert DeltaTable(path).version() == 0


def test_a_table_that_asks_more_is_left_to_delta_rs(tmp_path: Path) -> None:
    one = pa.table({"id": [1], "day": ["x"]})
    required = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    naive = pa.table({"id": [1], "at": pa.array([NOON.replace(tzinfo=None)], pa.timestamp("us"))})
    tables: dict[str, dict[str, Any]] = {
        "partitioned": {"data": one, "partition_by": ["day"]},
        "not_null": {"data": pa.table({"id": [1]}, schema=required)},
        "changes_kept": {"data": one, "configuration": {"delta.enableChangeDataFeed": "true"}},
        "no_zone": {"data": naive},
        "named": {"data": one, "configuration": {"delta.dataSkippingStatsColumns": "id,gone"}},
    }
    for name, asked in tables.items():
        place = str(tmp_path / name)
        write_deltalake(place, **asked)
        assert not DeltaCommitter(place).append(asked["data"], {}), name
        assert DeltaTable(place).version() == 0, name


@pytest.mark.parametrize("place", ["{folder}/none", "mock://{folder}/rides"])
def test_a_table_that_is_not_there_and_an_object_store_are_left_to_delta_rs(
    tmp_path: Path, place: str
) -> None:
    assert not DeltaCommitter(place.format(folder=tmp_path)).append(rides(1), {})


@pytest.mark.parametrize("helper", ["put_checksum", "make_checkpoint"])
def test_a_commit_is_made_whatever_becomes_of_its_checksum_and_checkpoint(
    lake: Lake,
    path: str,
    helper: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left")

    DeltaTable(path).alter.set_table_properties({"delta.checkpointInterval": "1"})
    monkeypatch.setattr(delta_commit, helper, fail)
    assert DeltaCommitter(path).append(rides(1), {})

    assert ids(lake) == [1]
    assert "version 2 is committed" in caplog.text


def test_a_table_made_again_under_an_open_appender_is_written_by_its_own_columns(
    lake: Lake, path: str
) -> None:
    appender = DeltaCommitter(path)
    for n in range(3):
        assert appender.append(rides(n), {})
    shutil.rmtree(path)
    other = pa.table({"id": pa.array([7], pa.int64()), "more": ["x"]})
    for _ in range(6):
        write_deltalake(path, other, mode="append")

    assert not appender.append(rides(9), {})  # Its column `at` is not one of this table.
    assert appender.append(other, {})

    version = DeltaTable(path).version()
    checksum = json.loads(Path(path, "_delta_log", f"{version:020d}.crc").read_text())
    assert version == 6
    assert checksum["numFiles"] == 7
    assert checksum["metadata"]["id"] == str(DeltaTable(path).metadata().id)


def test_a_disk_that_is_full_keeps_no_draft(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    appender = DeltaCommitter(path)
    assert appender.append(rides(1), {})
    before = sorted(Path(path).rglob("*"))

    def full(draft: Path, content: bytes) -> int:
        draft.touch()
        raise OSError(28, "No space left on device", str(draft))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        appender.append(rides(2), {})

    left = [p for p in sorted(Path(path).rglob("*")) if p not in before]
    assert not [p for p in left if p.name.endswith(".tmp")]


def test_a_disk_without_links_is_left_to_delta_rs(
    lake: Lake, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Any, target: Any) -> None:
        raise PermissionError(source, target)

    monkeypatch.setattr(os, "link", refuse)
    assert not DeltaCommitter(path).append(rides(1), {})
    assert ids(lake) == []
