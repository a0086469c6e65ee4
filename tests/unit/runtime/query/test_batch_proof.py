"""What the rows that wait prove of event time, and where nothing may be said of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from rivermark import Stream, Table
from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model.time import millis_of
from rivermark.runtime.query.batch_proof import BatchProof
from tests.unit.runtime.checkpoints import read

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
SCHEMA = StructType([StructField("id", LongType()), StructField("at", TimestampType())])
RIDES = Table(name="test/rides", schema=SCHEMA, description="Rides.", event_time="at")
READER = Stream(
    name="test/long",
    reads=(RIDES,),
    build=lambda rides: rides,
    writes=Table(name="test/long", schema=SCHEMA, description="Long.", event_time="at"),
    description="Long rides.",
    group="test",
    lateness=timedelta(seconds=10),
)


@pytest.fixture
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake whose rides have a commit of two rows, which the stream has read."""
    lake = Lake(str(tmp_path_factory.mktemp("lake")))
    create_table(lake, RIDES)
    rides(lake, 0, 5)
    read(lake, READER, 0, 2)
    return lake


def rides(lake: Lake, *seconds: float) -> None:
    """One commit of rides so many seconds after noon."""
    at = pa.array([AT + s * SECOND for s in seconds], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": pa.array(range(len(seconds)), pa.int64()), "at": at})
    assert DeltaCommitter(lake.path(RIDES)).append(rows, {})


def proof(lake: Lake, files: int = 100, size: int | None = None) -> BatchProof:
    return BatchProof(lake, READER, lake.checkpoint(READER.name, 0), files, [size])


def test_it_is_the_newest_time_of_the_commits_that_wait_less_the_lateness(lake: Lake) -> None:
    rides(lake, 20, 31.5)
    rides(lake, 29)
    assert proof(lake).proved() == millis_of(AT + 21.5 * SECOND)


def test_what_was_read_says_nothing_of_the_next_batch(lake: Lake) -> None:
    assert proof(lake).proved() is None


def test_it_does_not_go_back(lake: Lake) -> None:
    rides(lake, 60)
    told = proof(lake)
    assert told.proved() == millis_of(AT + 50 * SECOND)
    read(lake, READER, 1, 3)
    rides(lake, 55)
    assert told.proved() == millis_of(AT + 50 * SECOND)


def taken_in_part(lake: Lake) -> BatchProof:
    rides(lake, 30)
    return proof(lake, files=1)


def larger_than_a_batch(lake: Lake) -> BatchProof:
    return proof(lake, size=100)


def planned_and_not_finished(lake: Lake) -> BatchProof:
    read(lake, READER, 1, 3, done=False)
    return proof(lake)


def before_it_has_a_place(lake: Lake) -> BatchProof:
    read(lake, READER, 0, 2, snapshot=True)
    return proof(lake)


def with_a_commit_that_was_cut(lake: Lake) -> BatchProof:
    entry = Path(lake.path(RIDES)) / "_delta_log" / f"{2:020}.json"
    told = proof(lake)
    entry.write_bytes(entry.read_bytes()[:50])
    return told


def without_statistics(lake: Lake) -> BatchProof:
    path = lake.path(RIDES)
    DeltaTable(path).alter.set_table_properties({"delta.dataSkippingNumIndexedCols": "1"})
    read(lake, READER, 1, DeltaTable(path).version() + 1)
    rides(lake, 40)
    return proof(lake)


def of_another_schema(lake: Lake) -> BatchProof:
    more = pa.table({"more": pa.array([1], pa.int64())})
    write_deltalake(lake.path(RIDES), more, mode="append", schema_mode="merge")
    return proof(lake)


@pytest.mark.parametrize(
    "case",
    [
        taken_in_part,
        larger_than_a_batch,
        planned_and_not_finished,
        before_it_has_a_place,
        with_a_commit_that_was_cut,
        without_statistics,
        of_another_schema,
    ],
)
def test_nothing_is_told_where_a_batch_may_lack_what_proves_it(
    lake: Lake, case: Callable[[Lake], BatchProof]
) -> None:
    rides(lake, 20)
    assert case(lake).proved() is None


def test_replaced_rows_prove_nothing(lake: Lake) -> None:
    rides(lake, 20)
    DeltaTable(lake.path(RIDES)).update({"at": "at + interval '1 hour'"}, predicate="id = 0")
    assert proof(lake).proved() == millis_of(AT + 10 * SECOND)


def test_a_border_is_passed_once(lake: Lake) -> None:
    told, steps = proof(lake), [5 * SECOND]
    rides(lake, 12)
    assert told.passes_a_border(steps)
    assert not told.passes_a_border(steps)
    rides(lake, 14.999)
    assert not told.passes_a_border(steps)
    rides(lake, 15)
    assert told.passes_a_border(steps)
    assert not told.passes_a_border([timedelta(microseconds=1)])
