"""How far a stream has read a table, by its checkpoint; written as Spark writes it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from rivermark import Contract, Field, Ingest, Stream, Table, Topology
from rivermark.backfill.maintenance import upkeep
from rivermark.ingest.plan import BatchPlanner, plan_table
from rivermark.ingest.source.delta_table import DeltaSource
from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.lake import Lake
from rivermark.lake.maintenance.reader_positions import Reader
from rivermark.lake.schema import create_table
from rivermark.model.errors import CheckpointIncompatible, TableDamaged, UnknownStream
from rivermark.runtime.batch_metrics import BatchMetrics
from rivermark.runtime.checkpoint.positions import (
    check_positions,
    check_unread,
    commits_of_batch,
)
from rivermark.runtime.checkpoint.readers import readers_of
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS, ProgressLog
from rivermark.settings import Settings
from tests.unit.runtime.checkpoints import read, read_of

SCHEMA = StructType([StructField("id", LongType()), StructField("at", TimestampType())])
RIDES = Table(name="test/rides", schema=SCHEMA, description="Rides.", event_time="at")
LONG = Table(name="test/long", schema=SCHEMA, description="Long ones.", event_time="at")
READER = Stream(
    name="test/long",
    reads=(RIDES,),
    build=lambda rides: rides,
    writes=LONG,
    description="Long rides.",
    group="test",
    lateness=timedelta(0),
)
TOPOLOGY = Topology([READER])


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    found = Settings(home=tmp_path)
    create_table(found.lake(), RIDES)
    return found


@pytest.fixture
def lake(settings: Settings) -> Lake:
    return settings.lake()


def test_a_stream_that_never_started_needs_nothing(lake: Lake) -> None:
    assert readers_of(lake, TOPOLOGY, RIDES) == []


@pytest.mark.parametrize(
    ("batches", "needed"),
    [
        (
            [(0, 3, True, False), (9, 7, True, False), (10, 12, True, False)],
            Reader("test/long", 12, log_from=7),
        ),
        ([(9, 7, True, False), (10, 12, False, False)], Reader("test/long", 7)),
        ([(0, 7, False, False)], Reader("test/long", 0)),
        ([(0, 7, False, True)], Reader("test/long", 7, snapshot=True)),
        ([(0, 7, True, True)], Reader("test/long", 7, snapshot=True)),
    ],
    ids=["all finished", "one unfinished", "the first unfinished", "a snapshot", "a read snapshot"],
)
def test_what_the_last_finished_batch_left_unread_is_needed(
    lake: Lake, batches: list[tuple[int, int, bool, bool]], needed: Reader
) -> None:
    for batch, version, done, snapshot in batches:
        read(lake, READER, batch, version, done=done, snapshot=snapshot)

    assert readers_of(lake, TOPOLOGY, RIDES) == [needed]
    assert readers_of(lake, TOPOLOGY, LONG) == []


def test_n055_the_log_is_needed_from_the_place_before_the_last_finished_batch(lake: Lake) -> None:
    """Spark goes through that batch once more at each start."""
    read(lake, READER, 0, 3)
    assert readers_of(lake, TOPOLOGY, RIDES) == [Reader("test/long", 3, log_from=2)]
    read(lake, READER, 1, 8)
    [reader] = readers_of(lake, TOPOLOGY, RIDES)
    assert (reader.version, reader.log_from) == (8, 3)
    read(lake, READER, 2, 8)
    [reader] = readers_of(lake, TOPOLOGY, RIDES)
    assert (reader.version, reader.log_from) == (8, 7), "a compaction opens version 7"


def test_n056_a_table_that_cannot_be_looked_after_is_told_and_the_others_are(
    settings: Settings,
) -> None:
    lake = settings.lake()
    create_table(lake, LONG)
    create_table(lake, STREAM_PROGRESS)
    (Path(lake.path(LONG)) / "_delta_log" / f"{0:020}.json").write_text("")

    done = {each.table: each for each in upkeep(settings, TOPOLOGY, run_id="u")}

    assert f"{0:020}.json" in done[LONG.name].failed
    assert done[STREAM_PROGRESS.name].failed == ""
    assert done[STREAM_PROGRESS.name].after.log_files > 0


FOLLOWER = Ingest(
    name="test/followed",
    source=DeltaSource(table="to be set"),
    contract=Contract(
        fields=(
            Field("id", LongType(), required=True),
            Field("at", TimestampType(), required=True),
        ),
        event_time="at",
        keys=("id",),
    ),
    lateness=None,
    description="Rides, from their table.",
    group="test",
)


def test_a_source_that_reads_a_table_of_the_lake_is_a_reader_of_it(settings: Settings) -> None:
    lake = settings.lake()
    source = DeltaSource(table=f"file://{lake.path(RIDES)}")
    ingest = replace(FOLLOWER, source=source)
    topology, plan = Topology([ingest, READER]), plan_table(ingest)

    def needed() -> list[Reader]:
        return readers_of(lake, topology, RIDES)

    assert needed() == [], "it begins with the table as it is"
    assert readers_of(
        lake, Topology([replace(ingest, source=replace(source, from_version=4))]), RIDES
    ) == [Reader("test/followed", 4)]
    planner = BatchPlanner(lake, str(settings.landing_root), ingest, "r")
    planner.poll()
    assert needed() == [Reader("test/followed", 0, snapshot=True)], "planned, and not read"
    rows = pa.table({"id": [1], "at": [datetime(2026, 1, 1, tzinfo=UTC)]})
    for _ in range(3):
        write_deltalake(lake.path(RIDES), rows, mode="append")
        planner.poll()
    identity = str(DeltaTable(lake.path(plan)).metadata().id)
    for batch, version, oldest in ((0, 2, 1), (1, 4, 3), (2, 5, 4)):
        read_of(lake, ingest, identity, batch, version)
        assert needed() == [Reader("test/followed", oldest)], version
    assert readers_of(lake, topology, LONG) == []


def test_a_place_in_another_table_of_that_name_counts_as_nothing_read(lake: Lake) -> None:
    read(lake, READER, 3, 7)
    offsets = Path(lake.checkpoint(READER.name, 0)) / "offsets" / "3"
    offsets.write_text(offsets.read_text().replace('"reservoirId": "', '"reservoirId": "x'))
    assert readers_of(lake, TOPOLOGY, RIDES) == [Reader("test/long", 0)]


def test_old_rows_leave_the_log_of_batches(settings: Settings) -> None:
    lake, now = settings.lake(), datetime.now(UTC)
    log = ProgressLog(lake)
    for days in (40, 31, 29, 0):
        at = now - timedelta(days=days)
        log.add(BatchMetrics(stream="a", generation=0, run_id="r", batch_id=days, started_at=at))
        log.flush()

    for days in (50, 45):
        at = now - timedelta(days=days)
        log.add(BatchMetrics(stream="b's", generation=0, run_id="r", batch_id=days, started_at=at))
    log.flush()

    [dry] = upkeep(settings, TOPOLOGY, [STREAM_PROGRESS.name], run_id="u", dry_run=True)
    [done] = upkeep(settings, TOPOLOGY, [STREAM_PROGRESS.name], run_id="u")

    assert (dry.deleted_rows, done.deleted_rows) == (0, 3)
    left = DeltaTable(lake.path(STREAM_PROGRESS)).to_pyarrow_table()["batch_id"].to_pylist()
    assert sorted(left) == [0, 29, 45], "of a stream that rests its last batch stays"


def test_a_table_that_nobody_knows_is_refused_with_those_there_are(settings: Settings) -> None:
    with pytest.raises(UnknownStream, match=r"no table is named 'test/x'; .*test/long"):
        upkeep(settings, TOPOLOGY, ["test/x"], run_id="u")


def test_an_input_that_lies_behind_what_was_read_of_it_is_refused(lake: Lake) -> None:
    read(lake, READER, 0, 1)
    check_positions(lake, READER, 0)  # Version 0 is read, 1 comes next.

    read(lake, READER, 1, 9)
    with pytest.raises(CheckpointIncompatible, match=r"read version 8 of .*rides', whose newest"):
        check_positions(lake, READER, 0)


def test_n055_a_log_that_was_cut_behind_the_last_batch_is_refused_with_the_way_out(
    lake: Lake,
) -> None:
    """As earlier releases left it; Spark could only say that input is gone."""
    path = lake.path(RIDES)
    rows = pa.table({"id": [1], "at": [datetime(2026, 1, 1, tzinfo=UTC)]})
    for _ in range(3):
        write_deltalake(path, rows, mode="append")
    read(lake, READER, 0, 2)
    read(lake, READER, 1, 4)
    DeltaTable(path).create_checkpoint()
    log = Path(path) / "_delta_log"
    (log / f"{0:020}.json").unlink()
    (log / f"{1:020}.json").unlink()
    check_positions(lake, READER, 0)

    (log / f"{2:020}.json").unlink()
    with pytest.raises(CheckpointIncompatible, match=r"from version 2 on.* begins at 3") as refused:
        check_positions(lake, READER, 0)
    assert "none is lost" in str(refused.value)
    assert "rivermark reset test/long, then recompute the days" in str(refused.value)

    read(lake, READER, 2, 4, done=False)
    check_positions(lake, READER, 0)


def committed(path: str) -> Path:
    """The data file of a commit of ours to a table."""
    rows = pa.table({"id": [1], "at": [datetime(2026, 1, 1, tzinfo=UTC)]})
    before = {*Path(path).glob("*.parquet")}
    assert DeltaCommitter(path).append(rows, {})
    (added,) = {*Path(path).glob("*.parquet")} - before
    return added


def flip(footer_of: Path) -> None:
    content = bytearray(footer_of.read_bytes())
    content[-20] ^= 1
    footer_of.write_bytes(content)


def test_the_first_batch_of_a_run_is_checked_by_the_place_in_that_input(lake: Lake) -> None:
    create_table(lake, LONG)
    rides, long = lake.path(RIDES), lake.path(LONG)
    files = [committed(rides) for _ in range(3)]
    other = committed(long)
    read(lake, READER, 0, 2)
    checkpoint = lake.checkpoint(READER.name, 0)
    flip(files[0])
    flip(other)

    assert check_unread(rides, checkpoint, 1) == 3, "its first file was read before"
    with pytest.raises(TableDamaged, match=other.name):
        check_unread(long, checkpoint, 1)
    flip(files[2])
    with pytest.raises(TableDamaged, match=files[2].name):
        check_unread(rides, checkpoint, 1)


def test_a_table_that_is_read_as_it_is_is_checked_by_the_files_that_it_has(lake: Lake) -> None:
    path = lake.path(RIDES)
    former = committed(path)
    DeltaTable(path).delete()
    flip(former)
    kept = committed(path)
    DeltaTable(path).create_checkpoint()
    read(lake, READER, 0, 3, snapshot=True)
    checkpoint = lake.checkpoint(READER.name, 0)
    assert [check_unread(path, checkpoint, batch) for batch in (0, 1)] == [3, 3]

    for version in range(4):
        (Path(path) / "_delta_log" / f"{version:020}.json").unlink()
    flip(kept)
    for batch in (0, 1):
        with pytest.raises(TableDamaged, match=kept.name):
            check_unread(path, checkpoint, batch)


def test_the_commits_of_a_batch_lie_between_two_places_in_one_table(lake: Lake) -> None:
    read(lake, READER, 0, 2)
    read(lake, READER, 1, 5, done=False)
    checkpoint = lake.checkpoint(READER.name, 0)

    assert commits_of_batch(checkpoint, 1) == range(2, 5)
    assert commits_of_batch(checkpoint, 0) is None, "where the first one began is not in the log"
    assert commits_of_batch(checkpoint, 2) is None, "it is not planned"
    offsets = Path(checkpoint) / "offsets" / "1"
    plain = offsets.read_text()
    for of, instead in (
        ('"index": -1', '"index": 0'),
        ('"isStartingVersion": false', '"isStartingVersion": true'),
        ('"reservoirId": "', '"reservoirId": "another'),
        ('"sourceVersion": 1', '"sourceVersion": 2'),
        ("v1\n{}\n", "v1\n{}\n-\n"),
    ):
        offsets.write_text(plain.replace(of, instead))
        expected = range(2, 5) if instead.endswith("-\n") else None
        assert commits_of_batch(checkpoint, 1) == expected, instead
