"""What waits for a bounded run, by files that landed and commits that nobody read."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from rivermark import Contract, Field, Ingest, Stream, Table
from rivermark.ingest.plan import BatchPlanner
from rivermark.lake.maintenance.compaction import compact
from rivermark.lake.schema import create_table
from rivermark.lake.statistics import file_sizes
from rivermark.runtime.query import backlog
from rivermark.runtime.query.backlog import kind_of_run, shares, waiting_bytes
from rivermark.settings import Settings
from rivermark.sources import FileSource
from tests.unit.runtime.checkpoints import read

AT = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = StructType([StructField("id", LongType()), StructField("at", TimestampType())])
RIDES = Table(name="test/rides", schema=SCHEMA, description="Rides.", event_time="at")
READER = Stream(
    name="test/long",
    reads=(RIDES,),
    build=lambda rides: rides,
    writes=Table(name="test/long", schema=SCHEMA, description="Long.", event_time="at"),
    description="Long rides.",
    group="test",
    lateness=timedelta(0),
)
DOOR = Ingest(
    name="test/events",
    source=FileSource(folder="events", pattern="*", settle=timedelta(0)),
    contract=Contract(
        fields=(
            Field("id", LongType(), required=True),
            Field("at", TimestampType(), required=True),
        ),
        event_time="at",
        keys=("id",),
    ),
    lateness=timedelta(seconds=1),
    description="Events.",
    group="test",
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


def commit(settings: Settings, count: int) -> list[int]:
    """Commit so many files to the rides; gives the sizes of all there are, oldest first."""
    lake = settings.lake()
    create_table(lake, RIDES)
    for first in range(count):
        rows = {"id": list(range(first, first + 1 + 100 * first)), "at": [AT] * (1 + 100 * first)}
        kinds = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
        write_deltalake(lake.path(RIDES), pa.table(rows, schema=kinds), mode="append")
    return file_sizes(DeltaTable(lake.path(RIDES)))


def test_nothing_waits_where_there_is_nothing(settings: Settings) -> None:
    assert waiting_bytes(settings, READER) == 0
    assert waiting_bytes(settings, DOOR) == 0
    assert kind_of_run(settings, [DOOR, READER]) == "short"


def test_a_stream_that_never_ran_waits_for_the_whole_table(settings: Settings) -> None:
    sizes = commit(settings, 3)
    assert waiting_bytes(settings, READER) == 8 * sum(sizes), "Parquet counts eightfold"


def test_later_it_waits_for_the_commits_since(settings: Settings) -> None:
    commit(settings, 3)
    read(settings.lake(), READER, 0, 3)
    newest = Path(settings.lake().path(RIDES)) / "_delta_log" / f"{3:020d}.json"
    adds = [json.loads(line) for line in newest.read_text().splitlines() if '"add"' in line]
    assert waiting_bytes(settings, READER) == 8 * adds[0]["add"]["size"]


def test_rows_that_were_only_copied_do_not_wait(settings: Settings) -> None:
    commit(settings, 12)
    read(settings.lake(), READER, 0, 13)
    compact(settings.lake().path(RIDES), (), "u")
    assert waiting_bytes(settings, READER) == 0


def test_files_wait_until_they_have_arrived(settings: Settings) -> None:
    folder = Path(settings.landing_root) / "events"
    folder.mkdir(parents=True)
    line = '{"id": 1, "at": "2026-01-01T00:00:00Z"}\n'
    (folder / "a.json").write_text(line)
    (folder / "b.json.gz").write_bytes(b"12345")
    assert waiting_bytes(settings, DOOR) == len(line) + 8 * 5
    (folder / "b.json.gz").unlink()
    BatchPlanner(settings.lake(), settings.landing_root, DOOR, "run").poll()
    assert waiting_bytes(settings, DOOR) == 0


def test_a_large_backlog_asks_for_all_compilers(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = commit(settings, 3)
    monkeypatch.setattr(backlog, "LARGE", 8 * sum(sizes) - 1)
    assert kind_of_run(settings, [DOOR, READER]) == "large"
    monkeypatch.setattr(backlog, "LARGE", 8 * sum(sizes))
    assert kind_of_run(settings, [DOOR, READER]) == "short"


def test_records_that_no_stream_of_the_run_reads_ask_for_none(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(settings.landing_root) / "events"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text('{"id": 1, "at": "2026-01-01T00:00:00Z"}\n')
    monkeypatch.setattr(backlog, "LARGE", 1)
    assert kind_of_run(settings, [DOOR]) == "short", "admission is Python's"
    assert kind_of_run(settings, [DOOR, READER]) == "short", "it reads another table"
    behind = replace(READER, reads=(DOOR.admitted,))
    assert kind_of_run(settings, [DOOR, behind]) == "large"


def test_inputs_of_a_join_end_their_batches_together() -> None:
    assert shares([400, 100], most=80, least=5) == [80, 20], "both after five batches"
    assert shares([400, 0], most=80, least=5) == [80, 5], "more may come of the other one"


def test_what_fits_one_batch_is_not_held_back() -> None:
    assert shares([80, 1], most=80, least=5) == [80, 80]
    assert shares([0, 0], most=80, least=5) == [80, 80]


def test_what_cannot_be_told_is_left_for_the_run_to_say(settings: Settings) -> None:
    commit(settings, 1)
    read(settings.lake(), READER, 0, 1)
    offsets = Path(settings.lake().checkpoint(READER.name, 0)) / "offsets" / "0"
    offsets.write_text("v1\n{}\n{torn")
    with pytest.raises(ValueError, match="Expecting"):
        waiting_bytes(settings, READER)
    assert kind_of_run(settings, [READER]) == "short"
