"""State of process functions on Spark: a week at constant load, and a million live keys.

    python -m bench process_spark                       both
    python -m bench process_spark --week 40000          a week of so many events a day, in minutes
    python -m bench process_spark --live 1000000        1 M live rides, 1 % of them touched; what a
                                                        batch costs: --touches 6, then 18

Long rides from a Delta table to a Delta table, in a process of its own, with the real host, state
store and commits; CPU seconds and memory are those of its whole tree: driver, JVM, Python workers.
Alerts are compared with those that the rule gives by hand before anything is reported. What an
event costs is measured beside the peers (`python -m bench peers --section process`).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from bench.figures import options_of, report
from bench.peers.events import build_rides
from bench.peers.jobs.long_rides import LongRides
from bench.peers.workloads import BEGIN, DAY, HOUR, MINUTE
from bench.process_tree import run_measured
from rivermark.lake.schema import create_table
from rivermark.model.stream import Stream
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.process.spark import run_process
from rivermark.runtime.spark.session import open_session
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings

DAYS: Final = 8
"""A week, and a day after it. Times are in milliseconds."""
TOUCHES: Final = 6
TOO_LONG: Final = 30_000
"""Rides that started in the first half minute of fifty are too long in the end."""
LARGEST_COMMIT: Final = 1_000_000
RIDES: Final = Table(
    name="bench/rides",
    schema="ride_id long, is_start boolean, event_time timestamp, driver_id long",
    description="STARTs and ENDs of rides.",
    event_time="event_time",
)
ALERTS: Final = Table(
    name="bench/long_rides",
    schema="ride_id long, driver_id long, start_ms long",
    description="Rides of more than two hours.",
)
STREAM: Final = Stream(
    name="bench/long_rides",
    reads=(RIDES,),
    build=run_process(LongRides),
    writes=ALERTS,
    lateness=timedelta(minutes=1),
    state_store="rocksdb",
    description="Rides of more than two hours.",
    group="bench",
)


@dataclass(frozen=True)
class Rides:
    """Events in order of arrival: a START and an END of each ride, some of them lost."""

    ride: np.ndarray[Any, Any]
    is_start: np.ndarray[Any, Any]
    at: np.ndarray[Any, Any]

    def alerts(self) -> set[tuple[int, int]]:
        """Rides without an END within two hours of their START, and the START's time."""
        starts = dict(zip(self.ride[self.is_start], self.at[self.is_start], strict=True))
        ends = dict(zip(self.ride[~self.is_start], self.at[~self.is_start], strict=True))
        return {
            (int(ride), int(at))
            for ride, at in starts.items()
            if ends.get(ride, at + 3 * HOUR) > at + 2 * HOUR and ride >= 0
        }


def week_of(a_day: int) -> tuple[Rides, list[int]]:
    """The same day eight times over, and how many of its events arrive in each two hours.

    Ids begin at a million, so that none of them takes more bytes than another. The eighth day makes
    the end of the seventh like those before: its last rides end on the next day. The last two
    events, a day later, move the watermark past all others.
    """
    day, _ = build_rides(np.random.Generator(np.random.PCG64(7)), a_day // 2, DAY)
    ride, is_start, at = day["ride_id"], day["is_start"], day["event_ms"]
    days = np.arange(DAYS)[:, None]
    rides = (1_000_000 + ride + days * (ride.max() + 1)).ravel()
    times = (at + days * DAY).ravel()
    arrived = times + np.tile(
        np.random.Generator(np.random.PCG64(5)).integers(0, MINUTE, len(at)), DAYS
    )
    order = np.argsort(arrived, kind="stable")
    borders = BEGIN + np.arange(1, DAYS * 12) * 2 * HOUR
    places = np.searchsorted(arrived[order], borders).tolist()
    sizes = np.diff([0, *places, len(order)]).tolist()
    end = BEGIN + (DAYS + 1) * DAY
    return Rides(
        np.append(rides[order], [-1, -1]),
        np.append(np.tile(is_start, DAYS)[order], [True, False]),
        np.append(times[order], [end, end]),
    ), [*sizes, 2]


def open_rides(live: int, again: int) -> Rides:
    """So many rides that start, then the ENDs of one in a hundred, `again` times over.

    The last two events move the watermark so far that one in a hundred has been too long.
    """
    ride = np.arange(live, dtype=np.int64)
    draw = np.random.Generator(np.random.PCG64(3))
    ends = [draw.choice(ride, live // 100, replace=False) for _ in range(again)]
    at = BEGIN + np.arange(live) * 1_000 // (live // 3_000 + 1)
    end = BEGIN + 2 * HOUR + TOO_LONG + MINUTE
    return Rides(
        np.concatenate([ride, *ends, [-1, -1]]),
        np.concatenate([np.full(live, True), np.full(sum(map(len, ends)), False), [True, False]]),
        np.concatenate(
            [at, *(np.full(len(e), at.max() + n) for n, e in enumerate(ends)), [end, end]]
        ),
    )


def land(home: Path, rides: Rides, sizes: list[int]) -> None:
    """Write the events to the input table, in commits of these sizes."""
    lake = Settings(home=home).lake()
    create_table(lake, RIDES)
    place = 0
    for size in sizes:
        part = slice(place, place + size)
        place += size
        rows = pa.table(
            {
                "ride_id": rides.ride[part],
                "is_start": rides.is_start[part],
                "event_time": pa.array(rides.at[part] * 1000, pa.timestamp("us", "UTC")),
                "driver_id": rides.ride[part] % 10_000,
            }
        )
        write_deltalake(lake.path(RIDES), rows, mode="append")


def drain(home: Path) -> None:
    """Drain the input, a commit a batch, and print what each batch came to."""
    settings = Settings(home=home, driver_memory="2g", files_per_trigger=1)
    spark = open_session(settings, "long")
    run_bounded(spark, settings, Topology([STREAM]), [STREAM], run_id="bench")
    progress = spark.read.format("delta").load(settings.lake().path("ops/stream_progress"))
    names = ("duration_ms", "rows_in", "state_rows", "state_bytes")
    for row in progress.orderBy("batch_id").select(*names).collect():
        print(json.dumps(row.asDict()), flush=True)
    spark.stop()


def run(home: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Drain the input in a process of its own: its cost as figures, and its batches."""
    command = [sys.executable, "-m", "bench.process_spark", "--drain", str(home)]
    cost, batches = run_measured(command, home / "job.log")
    return {
        "cpu_seconds": round(cost.cpu, 1),
        "peak_rss_mb": round(cost.peak_rss / 1e6),
        "batches": len(batches),
    }, batches


def check(home: Path, expected: set[tuple[int, int]]) -> None:
    """Compare the alerts with those by hand, each once."""
    alerts = DeltaTable(Settings(home=home).lake().path(ALERTS)).to_pyarrow_table()
    pairs = zip(alerts["ride_id"].to_pylist(), alerts["start_ms"].to_pylist(), strict=True)
    rows = [(ride, at) for ride, at in pairs if ride >= 0]
    assert len(rows) == len(set(rows)), "an alert was written twice"
    assert set(rows) == expected, f"{len(rows)} alerts, not {len(expected)}"


def touch(home: Path, live: int, touches: int) -> dict[str, Any]:
    """Batches over one in a hundred of many live keys, then one in which so many are due."""
    brings = [LARGEST_COMMIT] * (live // LARGEST_COMMIT) or [live]
    rides = open_rides(live, touches)
    land(home, rides, [*brings, *[live // 100] * touches, 2])
    figures, batches = run(home)
    ended = set(rides.ride[~rides.is_start].tolist())
    starts = zip(rides.ride[:live].tolist(), rides.at[:live].tolist(), strict=True)
    late = {(ride, at) for ride, at in starts if at <= BEGIN + TOO_LONG and ride not in ended}
    check(home, late)
    stored = sum(p.stat().st_size for p in (home / "lake/checkpoints").rglob("*") if p.is_file())
    by_key = (each["state_bytes"] / max(each["state_rows"], 1) for each in batches)
    return figures | {
        "live_keys": live,
        "first_batches_ms": [each["duration_ms"] for each in batches[: len(brings)]],
        "batch_ms_1_percent": [each["duration_ms"] for each in batches[len(brings) :][:touches]],
        "batch_ms_due": [each["duration_ms"] for each in batches[len(brings) + touches :]],
        "state_bytes": batches[-1]["state_bytes"],
        "state_bytes_a_key": round(max(by_key), 1),
        "checkpoint_mb": round(stored / 1e6, 1),
    }


def week(home: Path, a_day: int) -> dict[str, Any]:
    """State and batch time over a simulated week of constant load, by day."""
    rides, sizes = week_of(a_day)
    land(home, rides, sizes)
    figures, every = run(home)
    check(home, rides.alerts())
    batches = [each for each in every if each["rows_in"]]
    days = [batches[place : place + 12] for place in range(0, 7 * 12, 12)]
    figures |= {"events": len(rides.ride), "batches": len(batches)}
    for name in ("state_rows", "state_bytes", "duration_ms"):
        by_day = [sum(each[name] for each in day) / len(day) for day in days]
        figures[f"{name}_by_day"] = [round(each, 1) for each in by_day]
        figures[f"{name}_drift_percent"] = round(100 * (by_day[-1] / by_day[1] - 1), 2)
    return figures


def main() -> None:
    """Measure and report."""
    parser = options_of(__doc__)
    parser.add_argument("--live", type=int, default=0, help="1 %% of so many live rides is touched")
    parser.add_argument("--touches", type=int, default=TOUCHES, help="batches that touch them")
    parser.add_argument("--week", type=int, default=0, help="events a day")
    parser.add_argument("--drain", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drain:
        drain(options.drain)
        return
    if not options.live and not options.week:
        options.live, options.week = 1_000_000, 40_000
    figures: dict[str, Any] = {}
    if options.live:
        with tempfile.TemporaryDirectory() as home:
            figures[f"live_{options.live}"] = touch(Path(home), options.live, options.touches)
    if options.week:
        with tempfile.TemporaryDirectory() as home:
            figures[f"week_{options.week}"] = week(Path(home), options.week)
    report("process_spark", figures, options.out)


if __name__ == "__main__":
    main()
