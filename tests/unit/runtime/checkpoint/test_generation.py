"""Checkpoints as files: how far a stream came, and whether its parts belong together."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.integrity.sidecar import chunk_sums, sidecar_of
from rivermark.lake.lake import Lake
from rivermark.lake.replace import replace_days
from rivermark.lake.schema import create_table
from rivermark.lake.written import note_path, noted
from rivermark.model.errors import CheckpointIncompatible
from rivermark.model.stream import Stream
from rivermark.model.time import FIRST as FIRST_MOMENT
from rivermark.model.time import LAST as LAST_MOMENT
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.checkpoint.closed_days import ClosedDays, last_closed
from rivermark.runtime.checkpoint.generation import (
    check_checkpoint,
    generation_path,
    open_generation,
    reset_generation,
)
from rivermark.runtime.checkpoint.watermarks import last_reached
from tests.unit.model.declared import MINUTE, ingest, stream, table

MIDNIGHT = datetime(2024, 3, 2, tzinfo=UTC)
FIRST = date(2024, 3, 1)
START = date(2024, 1, 1)
HOURS = stream("test/hours")
CLEAN = stream("test/clean", ingest(), volume="events")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def entry(lake: Lake, of: Stream, log: str, batch: int, **told: int) -> None:
    """An entry of a checkpoint's log as Spark writes it."""
    path = Path(lake.checkpoint(of.name, 0)) / log / str(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"v1\n{json.dumps(told)}\n")


def millis(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def finish(lake: Lake, of: Stream, batch: int, at: datetime | None, after: datetime) -> None:
    """A finished batch that ran with one watermark and led to another."""
    entry(lake, of, "offsets", batch, batchWatermarkMs=millis(at) if at else 0)
    entry(lake, of, "commits", batch, nextBatchWatermarkMs=millis(after))


def test_a_stream_that_never_ran_has_reached_nothing(lake: Lake) -> None:
    assert last_reached(lake, HOURS) is None
    open_generation(lake, HOURS, 2)
    assert last_reached(lake, HOURS) is None


def test_results_reach_as_far_as_the_watermark_of_the_last_finished_batch(lake: Lake) -> None:
    open_generation(lake, HOURS, 2)
    finish(lake, HOURS, 0, None, MIDNIGHT)
    assert last_reached(lake, HOURS) is None
    finish(lake, HOURS, 1, MIDNIGHT, MIDNIGHT + MINUTE)
    assert last_reached(lake, HOURS) == MIDNIGHT
    # Begun and not finished.
    entry(lake, HOURS, "offsets", 2, batchWatermarkMs=millis(MIDNIGHT + MINUTE))
    assert last_reached(lake, HOURS) == MIDNIGHT


def test_events_given_on_reach_as_far_as_the_next_watermark(lake: Lake) -> None:
    open_generation(lake, CLEAN, 2)
    finish(lake, CLEAN, 0, None, MIDNIGHT)
    assert last_reached(lake, CLEAN) == MIDNIGHT

    pairs = stream("test/pairs", CLEAN, ingest(), volume="events")
    open_generation(lake, pairs, 2)
    finish(lake, pairs, 0, None, MIDNIGHT)
    assert last_reached(lake, pairs) is None


def test_a_day_is_closed_when_the_watermark_has_reached_its_end_and_the_margin_too() -> None:
    assert last_closed(HOURS, MIDNIGHT) == FIRST
    assert last_closed(HOURS, MIDNIGHT - timedelta(microseconds=1)) == FIRST - timedelta(days=1)
    joined = stream("test/joined", margin=10 * MINUTE)
    assert last_closed(joined, MIDNIGHT + 9 * MINUTE) == FIRST - timedelta(days=1)
    assert last_closed(joined, MIDNIGHT + 10 * MINUTE) == FIRST


def test_closed_days_are_told_once_also_across_restarts(lake: Lake, tmp_path: Path) -> None:
    summary = StreamSummary(HOURS.name, watermark=MIDNIGHT + timedelta(days=2))
    open_generation(lake, HOURS, 2)
    create_table(lake, HOURS.tables[0])
    writer = TableWriter(lake, HOURS.tables[0], open_generation(lake, HOURS, 2).origin(HOURS, "r"))
    schema = DeltaTable(lake.path(HOURS.tables[0])).to_pyarrow_dataset().schema
    rows = [{"id": 1, "at": MIDNIGHT - timedelta(hours=1)}]
    writer.append_once(pa.Table.from_pylist(rows, schema), 0)

    assert ClosedDays(lake, tmp_path).newly_closed(HOURS, summary) == tuple(
        FIRST + timedelta(days=n) for n in range(3)
    )
    assert ClosedDays(lake, tmp_path).newly_closed(HOURS, summary) == ()
    assert ClosedDays(lake, tmp_path).first(HOURS.name) == FIRST
    summary.watermark = MIDNIGHT + timedelta(days=3, hours=5)
    assert ClosedDays(lake, tmp_path).newly_closed(HOURS, summary) == (FIRST + timedelta(days=3),)


@pytest.mark.parametrize(
    ("row", "watermark", "first", "last"),
    [
        pytest.param(FIRST_MOMENT, MIDNIGHT, START, FIRST, id="R06: year 1"),
        pytest.param(datetime(1970, 1, 1, tzinfo=UTC), MIDNIGHT, START, FIRST, id="R06: 1970"),
        pytest.param(MIDNIGHT, LAST_MOMENT, date(2024, 3, 2), None, id="R26: year 9999"),
    ],
)
def test_r06_r26_a_row_of_an_impossible_day_ends_no_run(
    lake: Lake,
    tmp_path: Path,
    row: datetime,
    watermark: datetime,
    first: date,
    last: date | None,
) -> None:
    """No day is closed before the first that the table can hold, nor one of the future."""
    create_table(lake, HOURS.tables[0])
    origin = open_generation(lake, HOURS, 2).origin(HOURS, "r")
    schema = DeltaTable(lake.path(HOURS.tables[0])).to_pyarrow_dataset().schema
    rows = pa.Table.from_pylist([{"id": 1, "at": row}], schema)
    TableWriter(lake, HOURS.tables[0], origin).append_once(rows, 0)
    summary = StreamSummary(HOURS.name, watermark=watermark)

    closed = ClosedDays(lake, tmp_path).newly_closed(HOURS, summary)

    assert (closed[0], closed[-1]) == (first, last or datetime.now(UTC).date())
    assert ClosedDays(lake, tmp_path).first(HOURS.name) == max(row.date(), START)
    assert ClosedDays(lake, tmp_path).newly_closed(HOURS, summary) == ()


def test_the_first_start_freezes_the_shuffle_partitions(lake: Lake) -> None:
    assert open_generation(lake, HOURS, 4).shuffle_partitions == 4
    assert open_generation(lake, HOURS, 16).shuffle_partitions == 4


def test_b020_state_without_offsets_is_refused_with_the_way_out(lake: Lake) -> None:
    origin = open_generation(lake, HOURS, 2).origin(HOURS, "run")
    finish(lake, HOURS, 0, None, MIDNIGHT)
    folder = Path(check_checkpoint(lake, HOURS, origin))
    (folder / "state").mkdir()
    assert check_checkpoint(lake, HOURS, origin)

    for log in ("offsets", "commits"):
        for path in (folder / log).iterdir():
            path.unlink()
    with pytest.raises(CheckpointIncompatible, match="state but no offsets") as refused:
        check_checkpoint(lake, HOURS, origin)
    assert str(folder) in str(refused.value)
    assert "rivermark reset test/hours" in str(refused.value)


def test_a_checkpoint_older_than_the_table_is_refused(lake: Lake) -> None:
    origin = open_generation(lake, HOURS, 2).origin(HOURS, "run")
    create_table(lake, HOURS.tables[0])
    empty = DeltaTable(lake.path(HOURS.tables[0])).to_pyarrow_table()
    TableWriter(lake, HOURS.tables[0], origin).append_once(empty, 5)

    with pytest.raises(CheckpointIncompatible, match=r"holds batch 5 but .* has planned none"):
        check_checkpoint(lake, HOURS, origin)
    entry(lake, HOURS, "offsets", 4, batchWatermarkMs=0)
    with pytest.raises(CheckpointIncompatible, match=r"holds batch 5 but .* has planned 4"):
        check_checkpoint(lake, HOURS, origin)
    entry(lake, HOURS, "offsets", 5, batchWatermarkMs=0)
    assert check_checkpoint(lake, HOURS, origin)


def appended(lake: Lake, batch: int) -> Path:
    """A batch in the table of HOURS, by a stream whose checkpoint is as far; returns the log."""
    origin = open_generation(lake, HOURS, 2).origin(HOURS, "run")
    create_table(lake, HOURS.tables[0])
    empty = DeltaTable(lake.path(HOURS.tables[0])).to_pyarrow_table()
    TableWriter(lake, HOURS.tables[0], origin).append_once(empty, batch)
    finish(lake, HOURS, batch, None, MIDNIGHT)
    return Path(lake.path(HOURS.tables[0]), "_delta_log")


def test_a_table_behind_its_checkpoint_is_refused(lake: Lake) -> None:
    for batch in range(3):
        log = appended(lake, batch)
    finish(lake, HOURS, 3, None, MIDNIGHT)
    origin = open_generation(lake, HOURS, 2).origin(HOURS, "run")
    assert check_checkpoint(lake, HOURS, origin), "a batch without rows makes no commit"

    for file in log.glob(f"{3:020d}.*"):
        file.unlink()
    with pytest.raises(CheckpointIncompatible, match=r"'test/hours' in .* lacks batch 2") as lost:
        check_checkpoint(lake, HOURS, origin)
    assert "rivermark fsck test/hours" in str(lost.value)

    shutil.rmtree(log.parent)
    with pytest.raises(CheckpointIncompatible, match="lacks batch 2"):
        check_checkpoint(lake, HOURS, origin)


def test_a_damaged_note_of_what_was_written_is_a_help_that_is_gone(lake: Lake) -> None:
    appended(lake, 0)
    origin = open_generation(lake, HOURS, 2).origin(HOURS, "run")
    path = Path(note_path(lake, HOURS.tables[0], origin))
    path.write_text(path.read_text().replace('"batch": 0', '"batch": 9'))
    assert check_checkpoint(lake, HOURS, origin)

    appended(lake, 1)
    assert noted(lake, HOURS.tables[0], origin) == 1


@pytest.mark.parametrize("text", ["", '{"numb', "{}", '{"number": 1, "since": "yes"}'])
def test_a_damaged_generation_file_is_named(lake: Lake, text: str) -> None:
    open_generation(lake, HOURS, 2)
    path = Path(generation_path(lake, HOURS))
    path.write_text(text)
    with pytest.raises(CheckpointIncompatible, match=rf"{path} is damaged .* rivermark reset"):
        open_generation(lake, HOURS, 2)


def test_a_flipped_digit_in_the_generation_file_names_no_other_checkpoint(lake: Lake) -> None:
    open_generation(lake, HOURS, 2)
    path = Path(generation_path(lake, HOURS))
    path.write_text(path.read_text().replace('"number": 0', '"number": 1'))
    with pytest.raises(CheckpointIncompatible, match="it was changed"):
        open_generation(lake, HOURS, 2)

    assert reset_generation(lake, HOURS, 2, lambda: None).number == 0


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("metadata", "", "is empty"),
        ("metadata", '{"id":"no id"}', "holds no name of a query"),
        ("offsets/4", "", "is empty"),
        ("offsets/4", "v1\n{", "cannot be read"),
        ("offsets/3", "v1", "is cut"),
        ("commits/3", "", "is empty"),
        ("commits/3", "what", "is cut"),
    ],
)
def test_a_damaged_file_of_a_checkpoint_is_named(
    lake: Lake, name: str, text: str, problem: str
) -> None:
    origin = open_generation(lake, HOURS, 2).origin(HOURS, "run")
    finish(lake, HOURS, 3, None, MIDNIGHT)
    entry(lake, HOURS, "offsets", 4, batchWatermarkMs=0)
    path = Path(lake.checkpoint(HOURS.name, 0), name)
    path.write_text(text)

    with pytest.raises(CheckpointIncompatible, match=rf"{path} {problem}") as refused:
        check_checkpoint(lake, HOURS, origin)
    assert "rivermark reset test/hours" in str(refused.value)


def test_what_hadoop_summed_up_is_held_to_it(lake: Lake) -> None:
    origin = open_generation(lake, HOURS, 2).origin(HOURS, "run")
    finish(lake, HOURS, 3, None, MIDNIGHT)
    path = Path(lake.checkpoint(HOURS.name, 0), "offsets", "3")
    sidecar_of(path).write_bytes(chunk_sums(path.read_bytes()))
    assert check_checkpoint(lake, HOURS, origin)

    path.write_bytes(path.read_bytes().replace(b"v1", b"v2"))
    with pytest.raises(CheckpointIncompatible, match=f"{path} does not agree"):
        check_checkpoint(lake, HOURS, origin)


def test_finished_batches_without_their_plan_are_refused(lake: Lake) -> None:
    origin = open_generation(lake, HOURS, 2).origin(HOURS, "run")
    for batch in range(3):
        finish(lake, HOURS, batch, None, MIDNIGHT)
    folder = Path(lake.checkpoint(HOURS.name, 0))
    (folder / "offsets" / "2").unlink()
    with pytest.raises(CheckpointIncompatible, match=r"offsets/2 is missing"):
        check_checkpoint(lake, HOURS, origin)
    entry(lake, HOURS, "offsets", 2, batchWatermarkMs=0)
    for batch in (1, 2):
        (folder / "commits" / str(batch)).unlink()
    with pytest.raises(CheckpointIncompatible, match=r"commits/1 is missing"):
        check_checkpoint(lake, HOURS, origin)


def test_a_table_of_another_generation_does_not_bind_a_checkpoint(lake: Lake) -> None:
    origin = open_generation(lake, HOURS, 2).origin(HOURS, "run")
    hours = table("test/hours")
    create_table(lake, hours)
    empty = DeltaTable(lake.path(hours)).to_pyarrow_table()
    earlier = type(origin)(origin.stream, 7, origin.since, "run")
    TableWriter(lake, hours, earlier).append_once(empty, 5)

    assert check_checkpoint(lake, HOURS, origin)


def written(lake: Lake, generation: int, batch: int, of: Stream = HOURS) -> None:
    """A batch of a generation in the stream's table."""
    origin = open_generation(lake, of, 2).origin(of, "run")
    create_table(lake, of.tables[0])
    empty = DeltaTable(lake.path(of.tables[0])).to_pyarrow_table()
    writer = TableWriter(lake, of.tables[0], replace(origin, generation=generation))
    writer.append_once(empty, batch)


def lose_checkpoints(lake: Lake, of: Stream = HOURS) -> None:
    shutil.rmtree(Path(lake.root) / "checkpoints" / of.name)


@pytest.mark.parametrize("generation", [0, 3])
def test_b022_a_lost_checkpoint_folder_is_refused_whatever_the_generation(
    lake: Lake, generation: int
) -> None:
    written(lake, generation, 5)
    lose_checkpoints(lake)

    with pytest.raises(CheckpointIncompatible) as refused:
        open_generation(lake, HOURS, 2)
    assert f"'test/hours' holds batch 5 of its generation {generation}" in str(refused.value)
    assert "checkpoints/test/hours/generation.json is gone" in str(refused.value)
    assert "rivermark reset test/hours" in str(refused.value)
    # It stays so until a person has decided.
    with pytest.raises(CheckpointIncompatible):
        open_generation(lake, HOURS, 2)


def test_b022_a_reset_goes_on_above_what_the_tables_hold(lake: Lake) -> None:
    written(lake, 3, 5)
    lose_checkpoints(lake)

    assert reset_generation(lake, HOURS, 2, lambda: None).number == 4
    assert open_generation(lake, HOURS, 2).number == 4


def test_b022_a_stream_that_replaces_days_goes_on_in_a_new_generation(lake: Lake) -> None:
    create_table(lake, HOURS.tables[0])
    rows = DeltaTable(lake.path(HOURS.tables[0])).to_pyarrow_table()
    metadata = {"stream": HOURS.name, "generation": 2, "refresh": 7, "run": "r"}
    replace_days(lake, HOURS.tables[0], rows, [FIRST], metadata)

    assert open_generation(lake, HOURS, 2).number == 3


def test_b022_rows_of_a_recompute_are_no_sign_of_a_lost_checkpoint(lake: Lake) -> None:
    create_table(lake, HOURS.tables[0])
    rows = DeltaTable(lake.path(HOURS.tables[0])).to_pyarrow_table()
    replace_days(lake, HOURS.tables[0], rows, [FIRST], {"stream": HOURS.name, "recompute": "r"})

    assert open_generation(lake, HOURS, 2).number == 0
