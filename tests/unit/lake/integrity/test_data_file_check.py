"""A flipped bit anywhere in a data file is never another row, whoever wrote the file."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import fs

from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.delta import dataset_of, delta_table, read_all, read_rows
from rivermark.lake.integrity.data_file_check import NAMED, check_added
from rivermark.lake.integrity.data_file_faults import DataFile, data_file_problem, data_files
from rivermark.lake.integrity.sidecar import agrees, end_agrees, sidecar_of, write_sidecar
from rivermark.lake.locks import commit_lock
from rivermark.lake.sql import query
from rivermark.model.errors import TableDamaged

ROWS = pa.table({"id": range(60), "name": [f"ride {i * 7919}" for i in range(60)]})
FLIPS = 60


@pytest.fixture(params=["ours", "delta-rs"])
def file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The one data file of a table, whose folder delta-rs escapes."""
    folder = tmp_path / "a pl\u00e4ce"
    with commit_lock(str(folder)):
        write_deltalake(str(folder), ROWS.schema.empty_table())
        if request.param == "ours":
            assert DeltaCommitter(str(folder)).append(ROWS, {})
        else:
            write_deltalake(str(folder), ROWS, mode="append")
    (path,) = folder.glob("*.parquet")
    assert (NAMED.fullmatch(path.name) is None) == (request.param == "delta-rs")
    return path


def flipped(content: bytes, first: int, times: int) -> Iterator[bytes]:
    """The content so many times, each with another bit flipped behind a place."""
    for place in random.Random(1).sample(range(8 * first, 8 * len(content)), times):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        yield bytes(damaged)


@pytest.mark.usefixtures("reading")
@pytest.mark.parametrize("read", [read_all, lambda table: read_rows(dataset_of(table))])
@pytest.mark.parametrize("part", ["pages", "footer"])
def test_no_flipped_bit_is_another_row(
    file: Path, part: str, read: Callable[[DeltaTable], pa.Table]
) -> None:
    content = file.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    table = delta_table(str(file.parent))
    raised: list[str] = []
    for damaged in flipped(content, 4 if part == "pages" else footer, FLIPS):
        file.write_bytes(damaged)
        try:
            assert read(table).equals(ROWS)
        except TableDamaged as damage:
            raised.append(damage.path)
    assert len(raised) > FLIPS // 2
    assert {*raised} == {str(file)}
    file.write_bytes(content)
    assert read(table).equals(ROWS)


@pytest.mark.usefixtures("reading")
def test_another_name_of_a_column_is_damage_and_named(file: Path) -> None:
    rows = dataset_of(delta_table(str(file.parent)))
    assert query("SELECT count(name) AS n FROM t", {"t": rows}) == [{"n": 60}]
    content = file.read_bytes()
    place = content.rindex(b"name")
    file.write_bytes(content[:place] + b"nbme" + content[place + 4 :])

    with pytest.raises(TableDamaged, match=file.name):
        read_rows(rows)
    for where in ("", "WHERE id > 1"):
        with pytest.raises(TableDamaged, match=file.name):
            query(f"SELECT count(name) AS n FROM t {where}", {"t": rows})  # noqa: S608
    (known,) = data_files(str(file.parent))
    assert data_file_problem(known, quick=True) is not None


def test_a_stream_is_told_before_spark_reads_a_footer_of_ours(file: Path) -> None:
    path = str(file.parent)
    check_added(path, 0, 1)
    content = bytearray(file.read_bytes())
    content[-20] ^= 1
    file.write_bytes(content)

    check_added(path, 2, 9)
    if NAMED.fullmatch(file.name) is None:
        check_added(path, 0, 1)  # Hadoop's checksum file lies beside it.
        assert agrees(file) is False
    else:
        with pytest.raises(TableDamaged, match=file.name):
            check_added(path, 0, 1)


def test_odd_names_of_folders_and_values_are_checked(tmp_path: Path) -> None:
    folder = tmp_path / "an odd folder"
    folder.mkdir()
    values = ["x y", "p%20q", "a/b é", "#?"]
    rows = pa.table({"id": range(4), "day": values})
    with commit_lock(str(folder)):
        write_deltalake(folder, rows, partition_by=["day"])
    damaged = {read_id(path): path for path in folder.rglob("*.parquet")}
    for place, path in damaged.items():
        content = path.read_bytes()
        at = content.rindex(b"id")
        path.write_bytes(content[:at] + b"ie" + content[at + 2 :])
        with pytest.raises(TableDamaged) as caught:
            read_rows(dataset_of(delta_table(str(folder))), filter=ds.field("id") == place)
        assert str(path) in str(caught.value)
        path.write_bytes(content)
    assert read_rows(dataset_of(delta_table(str(folder)))).sort_by("id").equals(rows)


def read_id(path: Path) -> int:
    number: int = pq.read_table(path, partitioning=None)["id"][0].as_py()
    return number


def test_no_thread_of_arrow_calls_python_to_read_a_table(file: Path) -> None:
    # A process that ends while one does is aborted ("terminate called without an exception").
    assert not isinstance(dataset_of(delta_table(str(file.parent))).filesystem, fs.PyFileSystem)


def test_files_of_earlier_releases_are_read_without_checksums(file: Path) -> None:
    sidecar_of(file).unlink(missing_ok=True)
    earlier = file.rename(file.with_name("part-00000-5e-c000.snappy.parquet"))
    log = file.parent / "_delta_log" / f"{1:020d}.json"
    log.write_text(log.read_text().replace(file.name, earlier.name))
    log.with_suffix(".crc").unlink(missing_ok=True)

    assert read_rows(dataset_of(delta_table(str(file.parent)))).equals(ROWS)


@pytest.mark.parametrize("size", [10, 512, 1_300])
@pytest.mark.parametrize("start", [0, 5, 512, 1_000])
def test_the_end_of_a_file_is_compared_by_its_chunks(tmp_path: Path, size: int, start: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 6)
    path.write_bytes(path.read_bytes()[:size])
    start = min(start, size - 1)
    write_sidecar(path)
    assert end_agrees(path, start)

    content = bytearray(path.read_bytes())
    content[start] ^= 1
    path.write_bytes(content)
    assert end_agrees(path, start) is False
    sidecar_of(path).unlink()
    assert end_agrees(path, start) is None


def edited(folder: Path, edit: Callable[[dict[str, Any]], None]) -> DataFile:
    """The one file of a table, whose log says something else of it."""
    write_deltalake(folder, ROWS)
    entry = folder / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        edit(action)
    entry.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    (file,) = data_files(str(folder))
    return file


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("delta.rowTracking.materializedRowIdColumnName", "name", None),
        ("delta.appendOnly", "false", "holds a column 'name', which the table does not have there"),
    ],
)
def test_columns_of_files_that_the_table_does_not_have_are_those_of_row_tracking_or_strange(
    tmp_path: Path, key: str, value: str, said: str | None
) -> None:
    def without_a_column(action: dict[str, Any]) -> None:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            del schema["fields"][1]
            action["metaData"]["schemaString"] = json.dumps(schema)
            action["metaData"]["configuration"][key] = value

    assert data_file_problem(edited(tmp_path, without_a_column)) == said


@pytest.mark.parametrize(
    ("bound", "value", "said"),
    [
        ("minValues", 1, "holds id 0, the log says 1 at least"),
        ("maxValues", 58, "holds id 59, the log says 58 at most"),
        ("minValues", -5, None),
    ],
)
def test_bounds_by_which_a_file_would_be_skipped_are_compared_with_it(
    tmp_path: Path, bound: str, value: int, said: str | None
) -> None:
    def bounded(action: dict[str, Any]) -> None:
        if "add" in action:
            stats = json.loads(action["add"]["stats"])
            stats[bound]["id"] = value
            action["add"]["stats"] = json.dumps(stats)

    assert data_file_problem(edited(tmp_path, bounded), quick=True) == said


@pytest.mark.parametrize(
    "moment", [datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)]
)
def test_bounds_at_the_ends_of_time_are_compared_too(tmp_path: Path, moment: datetime) -> None:
    rows = pa.table({"at": pa.array([moment], pa.timestamp("us", "UTC"))})
    write_deltalake(tmp_path, rows)
    (file,) = data_files(str(tmp_path))

    assert data_file_problem(file) is None
