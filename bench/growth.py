"""A month in minutes: what grows while the load stays the same.

    python -m bench growth [--days 30] [--batches 2] [--out FILE]

A stream of fares runs through to the hourly winners in one long-lived process. Each simulated day
is `--batches` files of `--rows` fares, whose event times fill the day; the next file lands when the
one before has passed through all streams. At the end of each day the upkeep of all tables and of
Dagster's event log runs, as the nightly job does. Old versions, the log of batches and the reports
in Dagster's log are kept for `--promise` seconds, which stand for some days (`promise_in_days`);
checkpoints keep 10 batches instead of Spark's 100. Measured at the end of each day: CPU
per batch (streams, and upkeep apart), memory after a collection of both heaps, state, files, log
entries, checkpoint folders, the event log. The slopes are those of the last half, in % a day.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Final

import dagster as dg
import psutil
from deltalake import DeltaTable

from bench.figures import options_of, report
from bench.latency import fare_line
from bench.workload import GROWING
from rivermark.backfill.maintenance import kept_tables, upkeep
from rivermark.dagster.jobs.event_log import prune_events
from rivermark.dagster.jobs.names import table_key
from rivermark.lake.log import CommitLog
from rivermark.model.stream import Stream, table_of
from rivermark.runtime.checkpoint.positions import position
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings
from rivermark.testing import wait_until
from rivermark.testing.landing import land

FIRST: Final = datetime(2026, 1, 1, tzinfo=UTC)
DRIVERS: Final = 200
PATIENCE: Final = 120.0


@dataclass
class Day:
    """Measured at the end of a simulated day."""

    day: int
    wall_seconds: float = 0.0
    batches: int = 0
    stream_cpu_ms_per_batch: float = 0.0
    upkeep_cpu_ms_per_batch: float = 0.0
    heap_mb: float = 0.0
    rss_mb: float = 0.0
    python_rss_mb: float = 0.0
    state_rows: int = 0
    state_bytes: int = 0
    live_files: int = 0
    data_files: int = 0
    data_bytes: int = 0
    log_files: int = 0
    log_bytes: int = 0
    checkpoint_files: int = 0
    checkpoint_bytes: int = 0
    event_log_rows: int = 0
    event_log_bytes: int = 0
    notes: list[str] = field(default_factory=list)


class Workload:
    """The streams in a process of their own, which takes commands from its standard input."""

    def __init__(self, home: Path, promise_days: float, log: IO[str]) -> None:
        """Start it."""
        command = [sys.executable, "-m", "bench.workload", "growth", str(home), str(promise_days)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        self._tree = psutil.Process(self._process.pid)
        self.wait_for("ready")

    def wait_for(self, event: str) -> dict[str, Any]:
        """The next line of that kind that the process prints."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                printed: dict[str, Any] = json.loads(line)
                if printed["event"] == event:
                    return printed
        raise SystemExit("the streams ended; see the workload's log")

    def command(self, command: str, event: str) -> dict[str, Any]:
        """Send a command and wait for the event that ends it."""
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self.wait_for(event)

    def cpu(self) -> float:
        """CPU seconds of the whole tree so far."""
        # No sampling thread here: it would count as CPU of the upkeep, which runs in this process.
        tree = [self._tree, *self._tree.children(recursive=True)]
        return float(sum(sum(p.cpu_times()[:2]) for p in tree if p.is_running()))

    def rss(self) -> tuple[float, float]:
        """Resident megabytes: of the whole tree, and of Python alone."""
        own = self._tree.memory_info().rss
        below = sum(p.memory_info().rss for p in self._tree.children(recursive=True))
        return (own + below) / 1e6, own / 1e6

    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def end(self) -> None:
        """Let it stop between two batches."""
        if self.alive():
            self.command("end", "ended")
        self._process.wait(timeout=120)


def fares(day: int, part: int, parts: int, rows: int) -> list[str]:
    """One file: its event times fill its part of the day, in disorder within half a minute."""
    chance = random.Random(day * parts + part)
    begin = FIRST + timedelta(days=day) + timedelta(days=part) / parts
    step = timedelta(days=1) / parts / rows
    number = (day * parts + part) * rows
    return [
        fare_line(
            number + n,
            begin + n * step - timedelta(seconds=chance.uniform(0, 30)),
            driver=1 + n % DRIVERS,
            tip=1 + n % 7,
        )
        for n in range(rows)
    ]


class Passage:
    """Whether all that has landed went through all streams."""

    def __init__(self, settings: Settings) -> None:
        self._lake = settings.lake()
        self._ids: dict[str, str] = {}

    def done(self, files: int) -> bool:
        """Whether so many files were admitted, and each stream has read all that is before it."""
        return self._admitted() >= files and all(self._read(s) for s in GROWING.streams[1:])

    def _admitted(self) -> int:
        path = self._lake.path("ops/ingest_files")
        if not self._lake.exists("ops/ingest_files"):
            return 0
        return int(DeltaTable(path).to_pyarrow_dataset().count_rows())

    def _read(self, stream: Any) -> bool:
        assert isinstance(stream, Stream)
        table = table_of(stream.reads[0])
        path = self._lake.path(table)
        if table.name not in self._ids:
            self._ids[table.name] = str(DeltaTable(path).metadata().id)
        place = position(self._lake, stream, self._ids[table.name])
        log = CommitLog(path)
        return place is not None and not log.adds_rows(place.version, log.versions()[-1] + 1)


def folder_size(folder: Path, *suffixes: str) -> tuple[int, int]:
    """Files and bytes below a folder; files may go meanwhile."""
    count = size = 0
    for path in folder.rglob("*"):
        try:
            if path.is_file() and (not suffixes or path.name.endswith(suffixes)):
                count, size = count + 1, size + path.stat().st_size
        except FileNotFoundError:
            continue
    return count, size


def measure_disk(day: Day, settings: Settings, instance: dg.DagsterInstance, events: Path) -> None:
    """Everything on disk."""
    lake = settings.lake()
    for name in kept_tables(GROWING):
        if not lake.exists(name):
            continue
        root = Path(lake.path(name))
        logged, log_bytes = folder_size(root / "_delta_log")
        files, size = folder_size(root, ".parquet")
        checkpoints, checkpoint_bytes = folder_size(root / "_delta_log", ".parquet")
        day.live_files += len(DeltaTable(str(root)).file_uris())
        day.data_files += files - checkpoints
        day.data_bytes += size - checkpoint_bytes
        day.log_files += logged
        day.log_bytes += log_bytes
    day.checkpoint_files, day.checkpoint_bytes = folder_size(Path(lake.root) / "checkpoints")
    progress = DeltaTable(lake.path(STREAM_PROGRESS)).to_pyarrow_table().to_pylist()
    newest = {r["stream"]: r for r in sorted(progress, key=lambda r: r["batch_id"])}
    day.state_rows = sum(r["state_rows"] for r in newest.values())
    day.state_bytes = sum(r["state_bytes"] for r in newest.values())
    day.event_log_bytes = folder_size(events)[1]
    day.event_log_rows = sum(
        len(instance.fetch_materializations(table_key(t), limit=10_000).records)
        for stream in GROWING.streams
        for t in stream.tables[:1]
    )


def log_reports(instance: dg.DagsterInstance) -> None:
    """One materialization per stream, as a live run logs it each minute."""
    for stream in GROWING.streams:
        metadata = dict.fromkeys(("rows_in", "rows_out", "late", "state_rows", "batch_ms"), 1)
        event = dg.AssetMaterialization(table_key(stream.tables[0]), metadata=metadata)
        instance.report_runless_asset_event(event)


@contextmanager
def world(options: argparse.Namespace) -> Iterator[tuple[Settings, dg.DagsterInstance, Path]]:
    """A home and a Dagster instance that are gone afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        events = folder / "dagster"
        events.mkdir()
        span = options.promise / 86_400
        settings = Settings(home=folder / "home", promise_days=span, progress_days=span)
        with dg.DagsterInstance.local_temp(str(events)) as instance:
            yield settings, instance, events


def measure(options: argparse.Namespace) -> list[Day]:
    """Live the month; ends early, after a whole day, when the minutes are over."""
    days: list[Day] = []
    deadline = time.monotonic() + options.minutes * 60
    with world(options) as (settings, instance, events), Path(options.log).open("w") as log:
        streams = Workload(settings.home, settings.promise_days, log)
        passage, files = Passage(settings), 0
        folder = Path(settings.landing_root) / "taxi" / "fares"
        for number in range(options.days):
            began, cpu, day = time.monotonic(), streams.cpu(), Day(number + 1)
            for part in range(options.batches):
                lines = fares(number, part, options.batches, options.rows)
                land(folder / f"{number:03}-{part:03}.json", lines)
                files += 1
                wait_until(
                    lambda: passage.done(files),  # noqa: B023
                    PATIENCE,
                    reason="all streams have read the file; see the workload's log",
                    alive=streams.alive,
                    interval=0.5,
                )
                log_reports(instance)
            day.batches = options.batches * len(GROWING.streams)
            day.stream_cpu_ms_per_batch = 1000 * (streams.cpu() - cpu) / day.batches
            before = time.process_time()
            for kept in upkeep(settings, GROWING, run_id="bench"):
                day.notes += [f"{kept.table}: {note}" for note in kept.notes]
            prune_events(instance, older_than_days=settings.promise_days)
            day.upkeep_cpu_ms_per_batch = 1000 * (time.process_time() - before) / day.batches
            day.heap_mb = float(streams.command("collect", "collected")["heap_mb"])
            day.rss_mb, day.python_rss_mb = streams.rss()
            measure_disk(day, settings, instance, events)
            day.wall_seconds = time.monotonic() - began
            days.append(day)
            sys.stderr.write(f"{asdict(day)}\n")
            if time.monotonic() > deadline:
                break
        streams.end()
    return days


def slope(values: Sequence[float]) -> float:
    """The straight line through values of successive days: its rise a day in % of their mean."""
    if len(values) < 2 or not any(values):
        return 0.0
    rise, _ = statistics.linear_regression(range(len(values)), values)
    return round(100 * rise / statistics.fmean(values), 2)


def figures_of(days: list[Day], options: argparse.Namespace) -> dict[str, Any]:
    """The last day's numbers, the slopes of the last half, and the days themselves."""
    rows = [asdict(day) for day in days]
    measured = [k for k in rows[0] if k not in ("day", "notes", "batches", "wall_seconds")]
    later = rows[len(rows) // 2 :]
    figures: dict[str, Any] = {
        "days": len(days),
        "files_a_day": options.batches,
        "rows_a_file": options.rows,
        "streams": len(GROWING.streams),
        "promise_in_days": round(
            options.promise / (sum(r["wall_seconds"] for r in later) / len(later)), 1
        ),
    }
    for name in measured:
        figures[name] = round(rows[-1][name], 1)
        figures[f"{name}_slope_percent_a_day"] = slope([r[name] for r in later])
    return figures | {"by_day": {name: [round(r[name], 2) for r in rows] for name in measured}}


def main() -> None:
    """Measure and report."""
    parser = options_of(__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--batches", type=int, default=2, help="files that stand for a day")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--promise", type=float, default=60.0, help="seconds")
    parser.add_argument("--minutes", type=float, default=60.0, help="end after that, if not before")
    parser.add_argument("--log", default="/dev/null", help="for the error output of Spark")
    options = parser.parse_args()
    days = measure(options)
    report("growth", figures_of(days, options), options.out)


if __name__ == "__main__":
    main()
