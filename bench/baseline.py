"""Four figures of the platform on this machine, as they are.

    python -m bench.baseline [--rides 500000] [--out docs/performance-baseline.json]

1. cold start to the first commit, 2. a bounded run of ride and fare events from files to winners,
3. the idle cost with all streams live, 4. event to table at a fixed rate, read by an independent
reader. Each is a process of its own; CPU seconds and peak memory are those of its whole tree.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
from deltalake import DeltaTable

from assets.topology import TOPOLOGY
from bench.process_tree import Cost, TreeMeter
from rivermark.lake.log import CommitLog
from rivermark.settings import Settings
from rivermark.testing.landing.json_lines import json_line
from rivermark.testing.landing.writer import land
from simulator.taxi.training import land_training


def run(home: Path, *arguments: str) -> tuple[Cost, list[dict[str, object]]]:
    """Run the workload to its end; gives its cost and what it said."""
    command = [sys.executable, "-m", "bench.workload", *arguments]
    began = time.time()
    with (home.parent / "workload.log").open("a") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        meter = TreeMeter(psutil.Process(process.pid))
        told: list[dict[str, object]] = [{"at": began, "event": "start"}]
        assert process.stdout is not None
        told += [json.loads(line) for line in process.stdout if line.startswith("{")]
        code = process.wait()
        cost = meter.stop()
    if code:
        raise SystemExit(f"the workload failed; see {home.parent / 'workload.log'}")
    return cost, told


def measure_bounded(folder: Path, rides: int) -> dict[str, float]:
    """A bounded run from files to winners, and what a thousandth of it costs (the fixed part)."""
    home = folder / f"bounded-{rides}"
    settings = Settings(home=home)
    land_training(Path(settings.landing_root), rides, blocks_a_file=5000, fares_a_file=25_000)
    cost, told = run(home, "bounded", str(home))
    first = min(
        commit.at.timestamp()
        for commit in CommitLog(settings.lake().path("taxi/ride_events_raw")).backwards()
        if "batch" in commit.metadata
    )
    events = 3 * rides
    return {
        "events": events,
        "wall_seconds": round(cost.wall, 2),
        "cpu_seconds": round(cost.cpu, 2),
        "peak_rss_mb": round(cost.peak_rss / 1e6),
        "events_per_second": round(events / cost.wall),
        "start_to_first_commit_seconds": round(first - float(str(told[0]["at"])), 2),
    }


def measure_live(folder: Path, seconds: float, rate: int, trigger: float) -> dict[str, object]:
    """All streams live: idle for a while, then fares at a fixed rate on a fixed schedule."""
    home = folder / "live"
    settings = Settings(home=home, trigger_seconds=trigger)
    idle, loaded = 30.0, seconds
    start_up = 90.0
    command = [
        sys.executable,
        "-m",
        "bench.workload",
        "live",
        str(home),
        str(start_up + idle + loaded + 20),
        str(trigger),
    ]
    with (folder / "workload.log").open("a") as log:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, text=True)
    meter = TreeMeter(psutil.Process(process.pid))
    time.sleep(start_up)
    before = meter.look().cpu
    time.sleep(idle)
    idle_cores = (meter.look().cpu - before) / idle
    before = meter.look().cpu
    delays = drive(settings, rate, loaded)
    loaded_cores = (meter.look().cpu - before) / loaded
    process.wait(timeout=180)
    cost = meter.stop()
    ordered = sorted(delays)
    return {
        "streams": len(TOPOLOGY.streams),
        "trigger_seconds": trigger,
        "idle_cores": round(idle_cores, 3),
        "rate_per_second": rate,
        "loaded_cores": round(loaded_cores, 3),
        "events_timed": len(ordered),
        "latency_p50_seconds": round(statistics.median(ordered), 3) if ordered else None,
        "latency_p95_seconds": round(ordered[int(len(ordered) * 0.95)], 3) if ordered else None,
        "latency_p99_seconds": round(ordered[int(len(ordered) * 0.99)], 3) if ordered else None,
        "peak_rss_mb": round(cost.peak_rss / 1e6),
    }


def drive(settings: Settings, rate: int, seconds: float) -> list[float]:
    """Land fares every 500 ms on a fixed schedule; time each from its scheduled moment to a commit.

    The reader polls the admitted table's log every 50 ms and never talks to the platform.
    """
    folder = Path(settings.landing_root) / "taxi" / "fares"
    path = settings.lake().path("taxi/fare_events")
    log = CommitLog(path)
    seen = max(log.versions(), default=-1)
    scheduled: dict[int, float] = {}
    delays: list[float] = []
    began = time.time() + 1
    step, per_step, sent, number = 0.5, rate // 2, 0, 1
    deadline = began + seconds + 15
    while time.time() < deadline and (sent < seconds / step or len(delays) < number - 1):
        due = began + sent * step
        if sent < seconds / step and time.time() >= due:
            at = datetime.fromtimestamp(due, UTC)
            lines = [fare(number + n, at) for n in range(per_step)]
            scheduled |= {number + n: due for n in range(per_step)}
            land(folder / f"bench-{sent:08d}.json", lines)
            sent, number = sent + 1, number + per_step
        while log.read(seen + 1) is not None:
            seen += 1
            now = time.time()
            added = DeltaTable(path, version=seen).to_pyarrow_table(
                columns=["ride_id"], filters=[("event_time", ">", at - timedelta(seconds=30))]
            )
            for ride in added["ride_id"].to_pylist():
                if ride in scheduled:
                    delays.append(now - scheduled.pop(ride))
        time.sleep(0.02)
    return delays


def fare(ride: int, at: datetime) -> str:
    """One fare as a JSON line."""
    return json_line(
        {
            "ride_id": ride,
            "taxi_id": 1 + ride % 200,
            "driver_id": 1 + ride % 200,
            "event_time": at,
            "payment_type": "CARD",
            "tip": 1,
            "tolls": 0,
            "total_fare": 10,
        }
    )


def main() -> None:
    """Measure, print, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rides", type=int, default=500_000)
    parser.add_argument("--small", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--trigger", type=float, default=2.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = {
            "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
            "load_before": os.getloadavg()[0],
            "small": measure_bounded(folder, options.small),
            "large": measure_bounded(folder, options.rides),
            "live": measure_live(folder, options.seconds, options.rate, options.trigger),
        }
    text = json.dumps(figures, indent=2)
    sys.stdout.write(text + "\n")
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
