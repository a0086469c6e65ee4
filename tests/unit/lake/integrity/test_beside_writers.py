"""A whole log is never refused, while writers append and maintenance cleans up."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.delta import delta_table
from rivermark.lake.integrity.fault import Fault
from rivermark.lake.integrity.log_check import check_log, check_newer
from rivermark.lake.integrity.log_faults import faults_of_log
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.maintenance.maintain import maintain
from rivermark.lake.schema import create_table
from rivermark.model.sink import Origin
from tests.unit.lake.conftest import RIDES, rides

BUSY = replace(RIDES, properties={"delta.checkpointInterval": "4"}, retention=timedelta(seconds=1))
BATCHES = 30


def write(lake: Lake, number: int, cleaned: Event) -> None:
    """Append batches of an origin of its own, until some of the log was cleaned away too."""
    origin = Origin(f"test/writer{number}", 0, datetime(2020, 1, 1, tzinfo=UTC), "run")
    writer = TableWriter(lake, BUSY, origin)
    batch = 0
    while batch < BATCHES or not cleaned.is_set():
        writer.append_once(rides(batch), batch)
        batch += 1


def clean(lake: Lake, writers: list[Future[None]], cleaned: Event) -> None:
    """Maintain the table until the writers are done."""
    while not all(w.done() for w in writers):
        done = maintain(lake, BUSY, now=datetime.now(UTC), run_id="maintenance", target=1 << 20)
        if done.deleted_log_entries:
            cleaned.set()


def faults(path: str) -> Iterator[Fault]:
    """Faults that are there at a second look, as fsck reports them."""
    first = list(faults_of_log(path))
    return (fault for fault in (faults_of_log(path) if first else ()) if fault in first)


def test_readers_refuse_nothing_beside_writers_and_maintenance(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    create_table(lake, BUSY)
    path = lake.path(BUSY)
    with ThreadPoolExecutor(3) as pool:
        cleaned = Event()
        writers = [pool.submit(write, lake, number, cleaned) for number in range(2)]
        cleaning = pool.submit(clean, lake, writers, cleaned)
        version = check_log(path)
        while not cleaning.done():
            delta_table(path)
            assert CommitLog(path).latest() is not None
            version = check_newer(path, max(version, check_log(path)))
            assert [each for each in faults(path) if not each.note] == []
        for writer in writers:
            writer.result()
        cleaning.result()
    assert check_log(path) >= 2 * BATCHES
