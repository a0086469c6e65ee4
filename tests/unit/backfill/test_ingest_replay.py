"""Where a replay of an ingest with a watermark per producer begins, and by which progress."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rivermark.backfill.ingest_replay.replay import start_of
from rivermark.ingest.producers import Producer, Producers
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.ingest.watermark import Progress
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import append_rows, rows_of
from rivermark.model.errors import RivermarkError
from rivermark.model.sink import Origin
from rivermark.sources import FileSource, PerProducer
from tests.unit.model.declared import ingest

TEN = datetime(2024, 3, 1, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RIDES = ingest(
    source=FileSource(folder="taxi", producers=r"^([^/]+)/"),
    watermark=PerProducer(idle=MINUTE),
    lateness=MINUTE,
)


def progress_at(minute: int) -> Progress:
    """The slow producer came to that minute, the fast one ten hours on."""
    slow, fast = TEN + minute * MINUTE, TEN + 600 * MINUTE
    known = {"slow": Producer(TEN, slow), "fast": Producer(TEN, fast)}
    return Progress(fast, producers=Producers(TEN, TEN, slow - MINUTE, known))


def read(lake: Lake, commit: int, *batches: int) -> None:
    """Batches of a file each that one commit brought."""
    create_table(lake, RIDES.raw)
    raw = TableWriter(lake, RIDES.raw, Origin(RIDES.name, 0, TEN, "run"))
    verdicts = {f"slow/{batch}": [None, None] for batch in batches}
    recorded = {"clock": progress_at(commit).to_json(), "verdicts": verdicts}
    raw.append_once(rows_of(RIDES.raw, []), commit, metadata=recorded)
    for batch in batches:
        rides = {"id": batch, "at": TEN + 600 * MINUTE, "_ingest_batch": batch}
        append_rows(lake, RIDES.admitted, [rides], {})
        file = {
            "stream": RIDES.name,
            "file": f"slow/{batch}",
            "path": f"/{batch}",
            "rows": 1,
            "size": 9,
        }
        outcome = {"ingest_batch": batch, "modified_at": TEN, "status": "read"}
        append_rows(lake, INGEST_FILES, [file | outcome], {})


def test_a_replay_of_the_first_batch_has_no_watermark_of_the_rows_to_come(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    read(lake, 0, 0, 1)
    read(lake, 1, 2)

    assert start_of(lake, RIDES, 0) == (0, Progress())


def test_a_replay_begins_with_the_commit_whose_progress_is_recorded(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    read(lake, 0, 0)
    read(lake, 1, 1, 2, 3)

    assert start_of(lake, RIDES, 3) == start_of(lake, RIDES, 1) == (1, progress_at(0))


def test_a_replay_is_refused_where_the_log_shows_no_progress_of_producers(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    read(lake, 5, 7)
    append_rows(lake, RIDES.admitted, [{"id": 1, "at": TEN, "_ingest_batch": 3}], {})

    with pytest.raises(RivermarkError, match=r"table 'test/rides_raw' no.*before batch 7, so"):
        start_of(lake, RIDES, 7)
