"""A batch that tasks write is the one that the driver writes, row for row, also after a kill.

Tasks are called in place, pickled as Spark sends them; what Spark itself does is tested in
tests/spark/ingest.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, cast

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import SparkSession

from rivermark import Contract, Field, Ingest, RivermarkError, Rule
from rivermark.ingest.admission import Admission, AdmissionResult
from rivermark.ingest.batch.base import Kind
from rivermark.ingest.batch.chunks import Chunk, ChunkWriter, RawTask
from rivermark.ingest.batch.executors import Task, written_chunks
from rivermark.ingest.batch.staged_batch import StagedBatch
from rivermark.ingest.parse.contract_parser import ContractParser
from rivermark.ingest.plan import BatchPlanner, plan_table, planned_split
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model.sink import Origin
from rivermark.model.source import Piece
from rivermark.sources import ElementsSource, FileSource, PerProducer

PICKLE: Final[Any] = CloudPickleSerializer()
FIRST: Final = datetime(2024, 3, 1, 10, tzinfo=UTC)
RULE: Final = Rule("broken", "id % 9 = 1", "quarantine", "Of every nine one.")
EVENTS: Final = Ingest(
    name="test/events",
    source=FileSource(folder="in", settle=timedelta(0), max_files=4, producers=r"^([^/]+)/"),
    contract=Contract(
        fields=(Field("id", "bigint", required=True), Field("at", "timestamp", required=True)),
        event_time="at",
        max_ahead=timedelta(days=40_000),
        max_jump=timedelta(minutes=30),
        rules=(RULE,),
    ),
    lateness=timedelta(seconds=30),
    description="Events.",
    group="test",
)
OF_PRODUCERS: Final = replace(EVENTS, watermark=PerProducer(idle=timedelta(days=9999)))
SHOWN: Final = ("_file", "_row", "id", "at", "reasons", "payload", "_watermark", "_late_by_ms")


@dataclass(frozen=True)
class InPlace:
    """Tasks called one after the other, with what Spark would send them."""

    parser: ContractParser

    def written(self, tasks: Sequence[Task], writer: ChunkWriter) -> list[Chunk]:
        """What they return."""
        sent: list[Task]
        sent, writer, parser = PICKLE.loads(PICKLE.dumps(([*tasks], writer, self.parser)))
        chunks = [chunk for task in sent for chunk in written_chunks(task.parsed(parser), writer)]
        received: list[Chunk] = PICKLE.loads(PICKLE.dumps(chunks))
        return received


def numbered(_: object, pieces: Sequence[Piece]) -> list[Piece]:
    behind: dict[str, int] = {}
    counted = []
    for piece in pieces:
        name = piece.splits[0]
        first = behind.get(name, 0) if piece.first is None else piece.first
        counted.append(replace(piece, first=first))
        behind[name] = first + piece.count()
    return counted


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of several pieces each."""
    monkeypatch.setattr("rivermark.ingest.admission.PIECE_BYTES", 3_000)
    monkeypatch.setattr("rivermark.ingest.admission.numbered", numbered)


@dataclass
class World:
    """A lake beside landed files, which the driver reads or tasks do."""

    root: Path
    ingest: Ingest
    by_tasks: bool
    spark: SparkSession | None = None
    """Spark for tasks; they are called in place without it."""

    @property
    def lake(self) -> Lake:
        return Lake(str(self.root / "lake"))

    def run(self) -> list[AdmissionResult]:
        """Plan, and admit all batches that are planned."""
        planner = BatchPlanner(self.lake, str(self.root / "landing"), self.ingest, "run")
        origin = Origin(self.ingest.name, 0, FIRST, "run")
        limit = 0 if self.by_tasks else 1 << 40
        spark = cast(SparkSession, self.spark)
        admission = Admission(spark, self.lake, self.ingest, planner.source, origin, limit)
        if self.spark is None:
            admission._executors = cast(Any, InPlace(admission._parser))
            admission._ended = lambda error: False  # type: ignore[method-assign]
        planner.poll()
        planned = DeltaTable(self.lake.path(plan_table(self.ingest))).to_pyarrow_table()
        splits = sorted(map(planned_split, planned.to_pylist()), key=lambda split: split.batch)
        groups = itertools.groupby(splits, key=lambda split: split.batch)
        return [admission.admit([*own], batch) for batch, own in groups]

    def rows(self) -> dict[str, list[tuple[str, ...]]]:
        """The rows of the ingest's tables, without what differs between runs."""
        found = {}
        for table in self.ingest.tables:
            rows = DeltaTable(self.lake.path(table)).to_pyarrow_table().to_pylist()
            shown = [tuple(str(row.get(name)) for name in SHOWN) for row in rows]
            found[table.name] = sorted(shown)
        return found

    def files(self) -> dict[str, tuple[int, int]]:
        """Data files of each table: those of its log, and those that lie in its folder."""
        return {
            table.name: (
                len(DeltaTable(self.lake.path(table)).file_uris()),
                len([*Path(self.lake.path(table)).glob("*.parquet")]),
            )
            for table in self.ingest.tables
        }


def land(root: Path, seed: int, *, late: float = 0.1, ahead: float = 0.01) -> None:
    """Files of good, broken, late and blank lines, and of some far ahead."""
    draw = random.Random(seed)
    for number in range(8):
        lines = []
        for place in range(120):
            seconds = number * 120 + place - 200 * (draw.random() < late)
            at = FIRST + timedelta(seconds=seconds + 7200 * (draw.random() < ahead))
            line = json.dumps({"id": number * 120 + place, "at": at.isoformat()})
            lines.append(line if draw.random() > 0.05 else draw.choice(["", "{", "  "]))
        path = root / "landing" / "in" / f"p{number % 2}" / f"{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (1_700_000_000 + number,) * 2)


def twins(
    tmp_path: Path, ingest: Ingest, spark: SparkSession | None = None, **shares: float
) -> tuple[World, World]:
    """The same files before the driver and before tasks."""
    worlds = [
        World(tmp_path / name, ingest, name == "tasks", spark) for name in ("driver", "tasks")
    ]
    land(worlds[0].root, 7, **shares)
    shutil.copytree(worlds[0].root, worlds[1].root)
    return worlds[0], worlds[1]


@pytest.mark.parametrize("ingest", [EVENTS, OF_PRODUCERS], ids=["one watermark", "of producers"])
def test_rows_are_the_same_by_driver_and_tasks(tmp_path: Path, ingest: Ingest) -> None:
    driver, tasks = twins(tmp_path, ingest)

    assert tasks.run() == driver.run()
    rows = tasks.rows()
    assert rows == driver.rows()
    assert ingest.watermark or all(rows.values())
    # Nothing is left of what was divided again.
    assert all(in_log == in_folder for in_log, in_folder in tasks.files().values())
    assert tasks.files()[ingest.raw.name][0] > 8
    assert_no_row_is_lost(tasks)
    assert carried(tasks) == carried(driver)


def carried(world: World) -> datetime | None:
    """The last watermark that rows carry."""
    rows = DeltaTable(world.lake.path(world.ingest.admitted)).to_pyarrow_table().to_pylist()
    return max((r["_watermark_after"] for r in rows if r.get("_watermark_after")), default=None)


def assert_no_row_is_lost(world: World) -> None:
    """A reader that stops behind each file, and waits as long as it has to, drops nothing."""
    path = world.lake.path(world.ingest.admitted)
    commits = sorted(Path(path, "_delta_log").glob("*.json"))
    actions = [json.loads(line) for commit in commits for line in commit.read_text().splitlines()]
    reached = datetime(1970, 1, 1, tzinfo=UTC)
    for action in actions:
        if "add" in action:
            rows = pq.read_table(f"{path}/{action['add']['path']}").to_pylist()
            assert all(row["at"] > reached for row in rows)
            if world.ingest.watermark:
                after = (row["_watermark_after"] for row in rows if row["_watermark_after"])
                reached = max([reached, *after])
            else:
                newest = max(row["at"] for row in rows)
                reached = max(reached, newest - timedelta(seconds=30))


def parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=50)


def avro(path: Path, rows: list[dict[str, Any]]) -> None:
    at = {"type": "long", "logicalType": "timestamp-micros"}
    fields = [{"name": "id", "type": "long"}, {"name": "at", "type": at}]
    with path.open("wb") as file:
        schema = {"type": "record", "name": "Event", "fields": fields}
        fastavro.writer(file, schema, rows, sync_interval=500)


def csv(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = ["at,id", *(f"{row['at'].isoformat()},{row['id']}" for row in rows)]
    path.write_text("\r\n".join(lines) + "\r\n")


def packed(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = "".join(json.dumps(row, default=str) + "\n" for row in rows)
    path.write_bytes(gzip.compress(lines.encode()))


@pytest.mark.parametrize(
    ("ending", "write"),
    [("parquet", parquet), ("avro", avro), ("csv", csv), ("json.gz", packed)],
)
def test_files_of_every_format_are_the_same_by_driver_and_tasks(
    tmp_path: Path, ending: str, write: Callable[[Path, list[dict[str, Any]]], None]
) -> None:
    ingest = replace(EVENTS, source=FileSource(folder="in", format=None, settle=timedelta(0)))
    rows = [{"id": n, "at": FIRST + timedelta(seconds=n)} for n in range(400)]
    worlds = [World(tmp_path / name, ingest, name == "tasks") for name in ("driver", "tasks")]
    for world in worlds:
        folder = world.root / "landing" / "in"
        folder.mkdir(parents=True)
        for number in range(2):
            path = folder / f"{number}.{ending}"
            write(path, rows[number * 200 : number * 200 + 200])
            os.utime(path, (1_700_000_000 + number,) * 2)

    driver, tasks = worlds
    assert tasks.run() == driver.run()
    assert tasks.rows() == driver.rows()
    assert len(tasks.rows()[ingest.raw.name]) == 400
    assert tasks.files()[ingest.raw.name][0] > (1 if ending == "json.gz" else 3)


def test_records_that_only_the_driver_reads_travel_to_tasks(tmp_path: Path) -> None:
    elements = tuple({"id": n, "at": FIRST + timedelta(seconds=n)} for n in range(300))
    ingest = replace(EVENTS, source=ElementsSource(elements=elements))
    driver, tasks = (
        World(tmp_path / name, ingest, name == "tasks") for name in ("driver", "tasks")
    )

    assert tasks.run() == driver.run()
    assert tasks.rows() == driver.rows()
    assert len(tasks.rows()[ingest.raw.name]) == 300


def test_parts_without_late_rows_are_committed_as_they_were_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, tasks = twins(tmp_path, EVENTS, late=0, ahead=0)
    jobs: list[int] = []
    written = InPlace.written

    def counted(self: InPlace, own: Sequence[Task], writer: ChunkWriter) -> list[Chunk]:
        jobs.append(len(own))
        return written(self, own, writer)

    monkeypatch.setattr(InPlace, "written", counted)
    results = tasks.run()
    assert len(jobs) == len(results) == 2
    assert sum(result.late for result in results) == 0


@pytest.mark.parametrize("kind", ["raw", "admitted", "late", "quarantined"])
def test_a_kill_before_any_commit_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind
) -> None:
    driver, tasks = twins(tmp_path, EVENTS)
    driver.run()
    write = StagedBatch.write

    def killed(self: StagedBatch, own: Kind, *args: Any, **more: Any) -> None:
        if own == kind:
            raise RivermarkError("killed")
        write(self, own, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(StagedBatch, "write", killed)
        with pytest.raises(RivermarkError, match="killed"):
            tasks.run()
    # A replay by the other road, and one by the same.
    tasks.by_tasks = kind in ("raw", "late")
    tasks.run()
    assert tasks.rows() == driver.rows()


def test_a_file_that_goes_away_is_quarantined_and_leaves_no_files(tmp_path: Path) -> None:
    _, tasks = twins(tmp_path, EVENTS)
    planner = BatchPlanner(tasks.lake, str(tasks.root / "landing"), EVENTS, "run")
    planner.poll()
    (tasks.root / "landing" / "in" / "p0" / "2.json").unlink()

    first, _ = tasks.run()
    rows = DeltaTable(tasks.lake.path(EVENTS.quarantine)).to_pyarrow_table().to_pylist()
    assert [r["reasons"] for r in rows if r["_row"] is None] == [["file_vanished"]]
    assert first.files == 4
    assert all(in_log == in_folder for in_log, in_folder in tasks.files().values())


def test_a_table_that_asks_for_more_than_columns_is_named_before_a_row_is_written(
    tmp_path: Path,
) -> None:
    driver, tasks = twins(tmp_path, EVENTS)
    for world in (driver, tasks):
        for table in EVENTS.tables:
            create_table(world.lake, table)
        late = DeltaTable(world.lake.path(EVENTS.late))
        late.alter.add_constraint({"known": "id >= 0"})

    with pytest.raises(RivermarkError, match=r"table 'test/events_late' has constraints.*smaller"):
        tasks.run()
    assert not any(tasks.rows().values())
    assert all(in_log == in_folder for in_log, in_folder in tasks.files().values())
    # The driver writes such a table by delta-rs, which checks what it asks for.
    driver.run()
    assert driver.rows()[EVENTS.late.name]


def test_raw_files_of_before_a_column_was_added_are_read(tmp_path: Path) -> None:
    old = {"_file": "a", "_ingest_batch": 3, "_ingested_at": FIRST, "_row": 1, "payload": "{}"}
    pq.write_table(pa.Table.from_pylist([old, old | {"_ingest_batch": 4}]), tmp_path / "a.parquet")

    [lines] = RawTask(str(tmp_path), "a.parquet", 3, 3).lines()
    assert lines.to_pylist() == [
        dict.fromkeys(("_landed_at", "_arrival", "_format", "_columns", "_head")) | old
    ]
