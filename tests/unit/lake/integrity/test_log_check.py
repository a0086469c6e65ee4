"""A damaged log is refused with the name of the file, by every road to the table."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import rivermark
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.delta import dataset_of, delta_table, read_batches, read_rows
from rivermark.lake.integrity import known_files, log_files
from rivermark.lake.integrity.log_check import check_log, check_newer
from rivermark.lake.integrity.log_faults import faults_of_log
from rivermark.lake.integrity.sidecar import agrees, write_sidecar
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import query
from rivermark.model.errors import TableDamaged
from rivermark.model.sink import Origin
from tests.unit.lake.conftest import RIDES, Foreign, ids, rides

ORIGIN = Origin("test/rides", 0, datetime(2020, 1, 1, tzinfo=UTC), "run")


def log_of(lake: Lake) -> Path:
    """The folder of the table's log."""
    return Path(lake.path(RIDES), "_delta_log")


def entry(lake: Lake, version: int) -> Path:
    """The log entry of a version."""
    return log_of(lake) / f"{version:020d}.json"


@pytest.fixture
def five(lake: Lake) -> Lake:
    """Five batches behind version 0, by entries of ours."""
    writer = TableWriter(lake, RIDES, ORIGIN)
    for batch in range(5):
        writer.append_once(rides(batch), batch)
    return lake


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut_after_the_first_line(path: Path) -> None:
    path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n")


def cut_in_a_line(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def blank(path: Path) -> None:
    path.write_bytes(b"\0" * 300)


def change_a_bound(path: Path) -> None:
    content = path.read_bytes()
    assert b"2024-03-01T12" in content
    path.write_bytes(content.replace(b"2024-03-01T12", b"2024-03-01T10"))


DAMAGES = [empty, cut_after_the_first_line, cut_in_a_line, blank, change_a_bound, Path.unlink]
ROADS: list[Callable[[Lake], object]] = [
    lambda lake: delta_table(lake.path(RIDES)),
    lambda lake: delta_table(lake.path(RIDES), version=5),
    lambda lake: query("SELECT count(*) FROM t", {"t": open_table(lake, RIDES)}),
    lambda lake: TableWriter(lake, RIDES, ORIGIN),
    lambda lake: check_newer(lake.path(RIDES), 2),
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("road", range(len(ROADS)))
def test_a_damaged_entry_is_no_commit_without_rows(
    five: Lake, damage: Callable[[Path], None], road: int
) -> None:
    damage(entry(five, 3))
    if road == 4 and damage is Path.unlink:
        return  # Nothing has come yet, as far as one who reads on can see.

    with pytest.raises(TableDamaged) as refused:
        ROADS[road](five)

    assert entry(five, 3).name in str(refused.value)
    assert "rivermark fsck test/rides" in str(refused.value)


@pytest.mark.parametrize("damage", DAMAGES[:4], ids=lambda each: each.__name__)
def test_an_entry_without_any_checksum_is_checked_by_itself(
    five: Lake, damage: Callable[[Path], None]
) -> None:
    for sums in log_of(five).glob("*.crc"):
        sums.unlink()
    damage(entry(five, 4))

    with pytest.raises(TableDamaged, match=entry(five, 4).name):
        list(CommitLog(five.path(RIDES)).backwards())
    with pytest.raises(TableDamaged, match=entry(five, 4).name):
        delta_table(five.path(RIDES))


def test_an_entry_of_others_that_was_cut_is_told_by_the_checksums(
    five: Lake, foreign: Foreign
) -> None:
    """Without metrics, and without a checksum of the entry, the number of files tells."""
    newest = entry(five, 5)
    lines = [json.loads(line) for line in newest.read_bytes().splitlines()]
    lines[0] = {"commitInfo": {"operation": "Unknown"}}
    newest.write_text("".join(f"{json.dumps(line)}\n" for line in lines[:1]))
    sums = json.loads(newest.with_suffix(".crc").read_text())
    del sums["rivermark"]
    newest.with_suffix(".crc").write_text(json.dumps(sums))

    with pytest.raises(TableDamaged, match=r"leaves 4 files where 0{19}5.crc counts 5"):
        delta_table(five.path(RIDES))


def test_a_copy_of_an_entry_is_no_commit(five: Lake) -> None:
    entry(five, 6).write_bytes(entry(five, 4).read_bytes())

    with pytest.raises(TableDamaged, match=rf"{entry(five, 6).name} is a copy .* version 4"):
        delta_table(five.path(RIDES))


def test_a_damaged_checksum_file_is_a_help_that_is_gone(
    five: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    sums = entry(five, 5).with_suffix(".crc")
    whole = sums.read_bytes()
    sums.write_bytes(whole[:-20])

    assert delta_table(five.path(RIDES)).version() == 5
    assert str(sums) in caplog.text
    assert not sums.exists(), "delta-rs takes columns from it"

    TableWriter(five, RIDES, ORIGIN).append_once(rides(5), 5)
    assert check_log(five.path(RIDES)) == 6
    assert ids(five) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("known", [False, True])
def test_a_checksum_file_with_another_column_gives_delta_rs_none(five: Lake, known: bool) -> None:
    if known:
        delta_table(five.path(RIDES))
    sums = entry(five, 5).with_suffix(".crc")
    sums.write_text(sums.read_text().replace('\\"id\\"', '\\"ib\\"'))

    assert delta_table(five.path(RIDES)).schema().fields[0].name == "id"
    assert ids(five) == [0, 1, 2, 3, 4]


def test_an_entry_that_is_gone_beside_its_checksum_file_is_missing(five: Lake) -> None:
    entry(five, 5).unlink()
    with pytest.raises(
        TableDamaged, match=rf"{entry(five, 5)} is missing, though .*5.crc is there"
    ):
        delta_table(five.path(RIDES))


def test_a_damaged_table_checkpoint_is_named(five: Lake) -> None:
    delta_table(five.path(RIDES)).create_checkpoint()
    (checkpoint,) = log_of(five).glob("*.checkpoint.parquet")
    write_sidecar(checkpoint)
    assert agrees(checkpoint)
    content = bytearray(checkpoint.read_bytes())
    content[len(content) // 2] ^= 8
    checkpoint.write_bytes(bytes(content))

    with pytest.raises(TableDamaged, match=checkpoint.name):
        delta_table(five.path(RIDES))

    checkpoint.write_bytes(b"")
    with pytest.raises(TableDamaged, match=rf"{checkpoint.name} is empty"):
        delta_table(five.path(RIDES))


def test_what_a_process_knows_of_a_log_stays_bounded(
    five: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_files, "REMEMBERED", 4)
    for _ in range(3):
        assert check_log(five.path(RIDES)) == 5
    folder = str(log_of(five).resolve())
    assert len(known_files.CHECKED[folder]) <= 4
    assert len(log_files._CONTENTS[folder]) <= 4


def test_a_log_that_begins_at_a_checkpoint_is_whole(five: Lake) -> None:
    delta_table(five.path(RIDES), version=3)
    delta_table(five.path(RIDES)).create_checkpoint()
    for version in range(5):
        entry(five, version).unlink()

    assert check_log(five.path(RIDES)) == 5


def test_every_road_to_a_table_passes_the_check() -> None:
    """No other module opens a table by delta-rs, or lets Spark read one."""
    opened = []
    root = Path(rivermark.__file__).parent
    for file in [*root.rglob("*.py"), *(root.parent / "jobs").rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call):
                continue
            text = ast.unparse(node.func)
            spark = text.endswith(("read.format", "readStream.format"))
            delta = spark and ast.unparse(node.args[0]) == "'delta'"
            if text == "DeltaTable" or delta:
                opened.append(file.relative_to(root.parent).as_posix())

    assert set(opened) == {
        "rivermark/lake/delta.py",
        # Other people's tables: change data is read with options of its own, behind the check.
        "rivermark/ingest/source/delta_table_reader.py",
        # A table checkpoint is made of links to the log, behind the check.
        "rivermark/lake/checkpoint.py",
        # fsck, which looks at what may be damaged.
        "rivermark/lake/integrity/data_file_faults.py",
        # A table of its own, in a folder that is gone afterwards.
        "rivermark/setup/class_archive_job.py",
    }


def test_every_read_of_arrow_names_the_file_that_it_fails_by() -> None:
    """No other module reads a dataset without `read_rows`, `read_batches` or `damage_named`."""
    read = []
    root = Path(rivermark.__file__).parent
    for file in [*root.rglob("*.py"), *(root.parent / "jobs").rglob("*.py")]:
        tree = ast.parse(file.read_text())
        named = {
            inner
            for block in ast.walk(tree)
            if isinstance(block, ast.With)
            and any("damage_named" in ast.unparse(item) for item in block.items)
            for inner in ast.walk(block)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                reads = node.func.attr in ("to_table", "to_batches", "count_rows", "scanner")
                first = node.func.attr == "head" and node.args
                if (reads or first) and node not in named:
                    read.append(file.relative_to(root.parent).as_posix())

    assert set(read) == {
        # Looks for the damaged file.
        "rivermark/lake/delta.py",
        # Is the dataset that others read.
        "rivermark/lake/table_rows.py",
        # Rows in memory, cut into batches.
        "rivermark/ingest/batch/executors.py",
        "rivermark/lake/schema.py",
        # Rows that Spark staged, which are no table.
        "rivermark/quality/publish_gate.py",
        "rivermark/sinks/file_drafts.py",
    }


@pytest.mark.parametrize("damage", [empty, cut_in_a_line, Path.unlink], ids=lambda d: d.__name__)
def test_a_read_names_the_data_file_that_it_fails_by(
    five: Lake, damage: Callable[[Path], None]
) -> None:
    file = max(Path(five.path(RIDES)).glob("*.parquet"))
    damage(file)
    rows = dataset_of(delta_table(five.path(RIDES)))

    for read in (
        lambda: read_rows(rows, columns=["id"]),
        lambda: list(read_batches(rows, columns=["id"])),
        lambda: query("SELECT sum(id) FROM t", {"t": rows}),
    ):
        with pytest.raises(TableDamaged, match=file.name) as refused:
            read()
        assert refused.value.path == str(file)
        assert "rivermark fsck test/rides" in str(refused.value)


def in_two_parts(lake: Lake, version: int) -> list[Path]:
    """A table checkpoint of two files, as other writers make them of large tables."""
    delta_table(lake.path(RIDES), version).create_checkpoint()
    whole = log_of(lake) / f"{version:020d}.checkpoint.parquet"
    actions = pq.read_table(whole)
    parts = []
    for number, rows in enumerate((actions.slice(0, 3), actions.slice(3)), 1):
        parts.append(whole.with_suffix(f".{number:010d}.{2:010d}.parquet"))
        pq.write_table(rows, parts[-1])
    whole.unlink()
    (log_of(lake) / "_last_checkpoint").unlink()
    return parts


@pytest.mark.parametrize("lost", [0, 1])
def test_a_checkpoint_that_lacks_a_part_stands_for_nothing(five: Lake, lost: int) -> None:
    parts = in_two_parts(five, 4)
    before = read_rows(open_table(five, RIDES))
    parts[lost].unlink()

    (fault,) = faults_of_log(five.path(RIDES))
    assert (fault.path, fault.note) == (str(parts[lost]), True)
    assert read_rows(open_table(five, RIDES)) == before
    # Its entries are read again, so each of them is checked.
    empty(entry(five, 2))
    with pytest.raises(TableDamaged, match=str(entry(five, 2))):
        open_table(five, RIDES)


@pytest.mark.parametrize("lost", [0, 1])
def test_the_lost_part_of_a_checkpoint_is_named(five: Lake, lost: int) -> None:
    parts = in_two_parts(five, 4)
    before = read_rows(open_table(five, RIDES))
    for version in range(4):
        entry(five, version).unlink()
    assert read_rows(open_table(five, RIDES)) == before
    parts[lost].unlink()

    with pytest.raises(TableDamaged, match=str(parts[lost])):
        open_table(five, RIDES)
    assert str(parts[lost]) in {fault.path for fault in faults_of_log(five.path(RIDES))}


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_the_files_of_a_v2_checkpoint_are_checked_too(five: Lake, kind: str) -> None:
    """As Spark writes one: the adds lie in files of their own, which delta-rs reads unchecked."""
    log = log_of(five)
    DeltaTable(five.path(RIDES)).create_checkpoint()
    (classic,) = log.glob("*.checkpoint.parquet")
    adds = log / "_sidecars" / "395ada9a-8245-4dcd-b6a6-8e53e4bfe8de.parquet"
    adds.parent.mkdir()
    shutil.copyfile(classic, adds)
    write_sidecar(adds)
    top = log / f"{classic.name[:20]}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{kind}"
    part = {"sidecar": {"path": adds.name, "sizeInBytes": adds.stat().st_size}}
    if kind == "json":
        top.write_text(json.dumps(part) + "\n")
    else:
        pq.write_table(pa.Table.from_pylist([part, {"sidecar": None}]), top)
    classic.unlink()
    (log / "_last_checkpoint").unlink(missing_ok=True)
    check_log(five.path(RIDES))

    whole = adds.read_bytes()
    for damage in (empty, cut_in_a_line, flip_a_bit, Path.unlink):
        known_files.CHECKED.clear()
        damage(adds)
        with pytest.raises(TableDamaged, match=adds.name):
            check_log(five.path(RIDES))
        faults = faults_of_log(five.path(RIDES))
        assert any(adds.name in fault.path + fault.problem for fault in faults)
        adds.write_bytes(whole)
    check_log(five.path(RIDES))


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
