"""Measures process functions on Spark: long-ride alerts from a Delta table to a Delta table.

    python -m bench.process_spark                        1 M and 5 M events
    python -m bench.process_spark --events 200000 --form rows
    python -m bench.process_spark --live 1000000         1 M live rides, 1 % of them touched
    python -m bench.process_spark --week 40000           a week of so many events a day, in minutes

Each run is a process of its own, with the real host, state store and commits; CPU seconds and
memory are those of its whole tree: driver, JVM, Python workers. Alerts are compared with those that
the rule gives by hand before anything is printed. The marginal rate is that of the events by which
the largest run exceeds the smallest.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from bench.figures import write_figures
from bench.process_spark_job import ALERTS, RIDES
from bench.process_tree import Cost, TreeMeter
from rivermark.lake.schema import create_table
from rivermark.settings import Settings

BEGIN: Final = 1_704_067_200_000
"""2024-01-01T00:00:00Z in milliseconds, as every time here."""
PER_DAY: Final = 1_000_000
DAY: Final = 86_400_000
HOUR: Final = 3_600_000
DAYS: Final = 8
"""A week, and a day after it."""
COMMIT: Final = 100_000
"""Events a commit of the input: a trigger takes several."""


@dataclass(frozen=True)
class Rides:
    """Events in order of arrival: a START and an END of each ride, some of them lost."""

    ride: np.ndarray[Any, Any]
    is_start: np.ndarray[Any, Any]
    at: np.ndarray[Any, Any]

    def alerts(self) -> set[tuple[int, int]]:
        """Rides without an END within two hours of their START, and when they pass them."""
        starts = dict(zip(self.ride[self.is_start], self.at[self.is_start], strict=True))
        ends = dict(zip(self.ride[~self.is_start], self.at[~self.is_start], strict=True))
        return {
            (int(ride), int(at) + 2 * HOUR)
            for ride, at in starts.items()
            if ends.get(ride, at + 3 * HOUR) > at + 2 * HOUR and ride >= 0
        }


def rides_of(events: int, seed: int = 7, per_day: int = PER_DAY) -> Rides:
    """About so many events at so many a day, out of order by up to a minute.

    2 % of the rides are long, 1 % have no END, 0.5 % no START. The last two events, a day later,
    move the watermark past all others.
    """
    draw = np.random.Generator(np.random.PCG64(seed))
    count = events // 2
    start = BEGIN + np.sort(draw.integers(0, DAY * events // per_day, count))
    length = np.minimum((draw.gamma(2.0, 8.0, count) * 60_000).astype(np.int64) + 60_000, 7_100_000)
    long = draw.random(count) < 0.02
    length[long] = 2 * HOUR + 1 + draw.integers(0, HOUR, long.sum())
    ride = np.arange(count, dtype=np.int64)
    with_start, with_end = draw.random(count) >= 0.005, draw.random(count) >= 0.01
    rides = np.concatenate([ride[with_start], ride[with_end]])
    is_start = np.concatenate([np.full(with_start.sum(), True), np.full(with_end.sum(), False)])
    at = np.concatenate([start[with_start], (start + length)[with_end]])
    order = np.argsort(at + draw.integers(0, 60_000, len(at)), kind="stable")
    end = at.max() + DAY
    return Rides(
        np.append(rides[order], [-1, -1]),
        np.append(is_start[order], [True, False]),
        np.append(at[order], [end, end]),
    )


def week_of(a_day: int) -> tuple[Rides, list[int]]:
    """The same day eight times over, and how many of its events arrive in each two hours.

    Ids begin at a million, so that none of them takes more bytes than another. The eighth day makes
    the end of the seventh like those before: its last rides end on the next day.
    """
    day = rides_of(a_day, per_day=a_day)
    ride, is_start, at = day.ride[:-2], day.is_start[:-2], day.at[:-2]
    days = np.arange(DAYS)[:, None]
    rides = (1_000_000 + ride + days * (ride.max() + 1)).ravel()
    times = (at + days * DAY).ravel()
    arrived = times + np.tile(
        np.random.Generator(np.random.PCG64(5)).integers(0, 60_000, len(at)), DAYS
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
    """So many rides that start, then the ENDs of one in a hundred, `again` times over."""
    ride = np.arange(live, dtype=np.int64)
    draw = np.random.Generator(np.random.PCG64(3))
    ends = [draw.choice(ride, live // 100, replace=False) for _ in range(again)]
    at = BEGIN + np.arange(live) * 1_000 // (live // 3_000 + 1)
    return Rides(
        np.concatenate([ride, *ends]),
        np.concatenate([np.full(live, True), np.full(sum(map(len, ends)), False)]),
        np.concatenate([at, *(np.full(len(e), at.max() + n) for n, e in enumerate(ends))]),
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
                "at": pa.array(rides.at[part] * 1000, pa.timestamp("us", "UTC")),
                "driver": rides.ride[part] % 10_000,
            }
        )
        write_deltalake(lake.path(RIDES), rows, mode="append")


def run(home: Path, form: str, commits: int) -> tuple[Cost, list[dict[str, Any]]]:
    """Run the job to its end; gives its cost and what it said."""
    command = [sys.executable, "-m", "bench.process_spark_job", str(home), form, str(commits)]
    with (home / "job.log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        meter = TreeMeter(psutil.Process(process.pid))
        assert process.stdout is not None
        told = [json.loads(line) for line in process.stdout if line.startswith("{")]
        code = process.wait()
        cost = meter.stop()
    if code:
        raise SystemExit(f"the job failed: {(home / 'job.log').read_text()[-3000:]}")
    return cost, told


def check(home: Path, expected: set[tuple[int, int]]) -> None:
    """Compare the alerts with those by hand, each once."""
    found = DeltaTable(Settings(home=home).lake().path(ALERTS)).to_pyarrow_table()
    at = found["at"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()
    rows = [(r, t) for r, t in zip(found["ride_id"].to_pylist(), at, strict=True) if r >= 0]
    assert len(rows) == len(set(rows)), "an alert was written twice"
    assert set(rows) == expected, f"{len(rows)} alerts, not {len(expected)}"


def drain(folder: Path, events: int, form: str, batch: int) -> dict[str, Any]:
    """Long rides from first to last event."""
    home = folder / f"{form}-{events}"
    home.mkdir()
    rides = rides_of(events)
    whole = len(rides.ride)
    land(home, rides, [COMMIT] * (whole // COMMIT) + [whole % COMMIT])
    cost, told = run(home, form, max(batch // COMMIT, 1))
    check(home, rides.alerts())
    done = next(each for each in told if each["event"] == "done")
    batches = [each["ms"] for each in told if each["event"] == "batch"]
    return {
        "events": whole,
        "cpu_seconds": round(cost.cpu, 1),
        "wall_seconds": round(cost.wall, 1),
        "peak_rss_mb": round(cost.peak_rss / 1e6),
        "batches": done["batches"],
        "batch_ms": batches,
        "alerts": done["rows_out"],
        "dropped": done["dropped"],
    }


def touch(folder: Path, live: int) -> dict[str, Any]:
    """A batch over one in a hundred of many live keys."""
    home = folder / f"live-{live}"
    home.mkdir()
    again = 6
    land(home, open_rides(live, again), [live, *[live // 100] * again])
    cost, told = run(home, "packed", 1)
    done = next(each for each in told if each["event"] == "done")
    batches = [each["ms"] for each in told if each["event"] == "batch"]
    stored = sum(p.stat().st_size for p in (home / "lake/checkpoints").rglob("*") if p.is_file())
    return {
        "live_keys": live,
        "first_batch_ms": batches[0],
        "batch_ms_1_percent": batches[1:],
        "state_bytes": done["state_bytes"],
        "state_bytes_a_key": round(
            max(each["state_bytes"] / max(each["state_rows"], 1) for each in told if "ms" in each),
            1,
        ),
        "checkpoint_mb": round(stored / 1e6, 1),
        "cpu_seconds": round(cost.cpu, 1),
        "peak_rss_mb": round(cost.peak_rss / 1e6),
    }


def week(folder: Path, a_day: int) -> dict[str, Any]:
    """State and batch time over a simulated week of constant load: its second day and its last."""
    home = folder / f"week-{a_day}"
    home.mkdir()
    rides, sizes = week_of(a_day)
    land(home, rides, sizes)
    cost, told = run(home, "packed", 1)
    check(home, rides.alerts())
    batches = [each for each in told if each["event"] == "batch" and each["rows"]]
    days = [batches[place : place + 12] for place in range(0, 7 * 12, 12)]
    figures: dict[str, Any] = {
        "events": len(rides.ride),
        "batches": len(batches),
        "cpu_seconds": round(cost.cpu, 1),
        "peak_rss_mb": round(cost.peak_rss / 1e6),
    }
    for name in ("state_rows", "state_bytes", "ms"):
        by_day = [sum(each[name] for each in day) / len(day) for day in days]
        figures[f"{name}_by_day"] = [round(each, 1) for each in by_day]
        figures[f"{name}_drift_percent"] = round(100 * (by_day[-1] / by_day[1] - 1), 2)
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events", type=int, nargs="*", default=[1_000_000, 5_000_000])
    parser.add_argument("--form", choices=["packed", "rows", "pandas"], default="packed")
    parser.add_argument("--batch", type=int, default=500_000)
    parser.add_argument("--live", type=int, default=0, help="only touch 1 %% of so many live rides")
    parser.add_argument("--week", type=int, default=0, help="only a week of so many events a day")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as found:
        folder = Path(found)
        if chosen.live or chosen.week:
            if chosen.live:
                figures[f"live_{chosen.live}"] = touch(folder, chosen.live)
            if chosen.week:
                figures[f"week_{chosen.week}"] = week(folder, chosen.week)
        else:
            runs = [drain(folder, events, chosen.form, chosen.batch) for events in chosen.events]
            figures |= {f"{chosen.form}_{each['events']}": each for each in runs}
            few, many = runs[0], runs[-1]
            if few is not many:
                more = many["events"] - few["events"]
                spent = many["cpu_seconds"] - few["cpu_seconds"]
                figures["marginal_events_per_cpu_second"] = round(more / spent)
    for name, value in figures.items():
        print(name, json.dumps(value))
    if chosen.out:
        write_figures(chosen.out, "process_spark", figures)


if __name__ == "__main__":
    main()
