"""How far a stream has read a table, by its checkpoint; written as Spark writes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from rivermark import Stream, Table, Topology
from rivermark.backfill.maintenance import upkeep
from rivermark.lake.lake import Lake
from rivermark.lake.maintenance.reader_positions import Reader
from rivermark.lake.schema import create_table
from rivermark.model.errors import CheckpointIncompatible, UnknownStream
from rivermark.runtime.batch_metrics import BatchMetrics
from rivermark.runtime.checkpoint.positions import check_positions, readers_of
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS, ProgressLog
from rivermark.settings import Settings
from tests.unit.runtime.checkpoints import read

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
            Reader("test/long", 12),
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

    [dry] = upkeep(settings, TOPOLOGY, [STREAM_PROGRESS.name], run_id="u", dry_run=True)
    [done] = upkeep(settings, TOPOLOGY, [STREAM_PROGRESS.name], run_id="u")

    assert (dry.deleted_rows, done.deleted_rows) == (0, 2)
    left = DeltaTable(lake.path(STREAM_PROGRESS)).to_pyarrow_table()["batch_id"].to_pylist()
    assert sorted(left) == [0, 29]


def test_a_table_that_nobody_knows_is_refused_with_those_there_are(settings: Settings) -> None:
    with pytest.raises(UnknownStream, match=r"no table is named 'test/x'; .*test/long"):
        upkeep(settings, TOPOLOGY, ["test/x"], run_id="u")


def test_an_input_that_lies_behind_what_was_read_of_it_is_refused(lake: Lake) -> None:
    read(lake, READER, 0, 1)
    check_positions(lake, READER, 0)  # Version 0 is read, 1 comes next.

    read(lake, READER, 1, 9)
    with pytest.raises(CheckpointIncompatible, match=r"read version 8 of .*rides', whose newest"):
        check_positions(lake, READER, 0)
