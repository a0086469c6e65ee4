"""Event to admitted table: how long after its own time a row can be read, with all streams live.

    python -m bench latency [--rate 1000] [--warm 240] [--seconds 60] [--out FILE]

Three processes that do not wait for each other: the platform with every stream there is; a
generator, which lands fares in files of half a second on a schedule fixed beforehand; and this one,
which reads the table's log every 20 ms. A sample is the moment at which a commit is seen less the
event's scheduled time, for every event, so up to half a second of each is the wait for its file.
Also measured: the cost while nothing arrives, and the cost under load (CPU of the whole process
tree), once at the trigger of the platform's settings and once at `--slow-trigger`, whose figures
begin with `slow_`. A new process is slow for minutes, while its JVM compiles what runs often: the
first `--warm` seconds of load are reported apart.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil
import pyarrow.compute as pc
import pyarrow.parquet as pq

from assets.topology import TOPOLOGY
from bench.figures import load, options_of, report
from bench.process_tree import TreeMeter
from rivermark.settings import Settings
from rivermark.testing.landing.json_lines import json_line
from rivermark.testing.landing.writer import land

STEP: Final = 0.5
QUIET_CORES: Final = 0.3
"""The start counts as over when five seconds cost less than this."""


@dataclass
class Sample:
    """A commit as the reader saw it: when (seconds since 1970), and its rows' scheduled times."""

    at: float
    scheduled: Any


@dataclass
class Reader:
    """Follows a table by its log alone."""

    table: Path
    samples: list[Sample] = field(default_factory=list)
    version: int = 0

    def read_new(self) -> None:
        """Read the commits that were not seen before."""
        while True:
            log = self.table / "_delta_log" / f"{self.version:020d}.json"
            if not log.exists():
                return
            now = time.time()
            actions = [json.loads(line) for line in log.read_text().splitlines()]
            for action in actions:
                if "add" in action:
                    rows = pq.read_table(self.table / action["add"]["path"], columns=["event_time"])
                    micros = pc.cast(rows["event_time"], "int64").to_numpy()
                    self.samples.append(Sample(now, micros / 1e6))
            self.version += 1

    def delays(self, first: float, last: float) -> Any:
        """Seconds from schedule to sight, of all events scheduled in the time between."""
        delays = [
            s.at - s.scheduled[(s.scheduled >= first) & (s.scheduled < last)] for s in self.samples
        ]
        return np.concatenate(delays) if delays else np.array([])


def fare_line(ride: int, at: datetime, *, driver: int, tip: int) -> str:
    """A fare as a landed JSON line."""
    return json_line(
        {
            "ride_id": ride,
            "taxi_id": driver,
            "driver_id": driver,
            "event_time": at,
            "payment_type": "CARD",
            "tip": tip,
            "tolls": 0,
            "total_fare": 9 + tip,
        }
    )


def generate(folder: Path, rate: int, began: float, seconds: float) -> None:
    """Land each half second's fares at its end, late where it must be, but never put off."""
    per_step = round(rate * STEP)
    for step in range(round(seconds / STEP)):
        times = [began + step * STEP + n / rate for n in range(per_step)]
        first = step * per_step
        lines = [
            fare_line(
                first + n, datetime.fromtimestamp(at, UTC), driver=1 + (first + n) % 200, tip=1
            )
            for n, at in enumerate(times)
        ]
        time.sleep(max(began + (step + 1) * STEP - time.time(), 0))
        land(folder / f"latency-{step:08d}.json", lines)


def percentiles(delays: Any, name: str) -> dict[str, float]:
    """The figures of a set of samples."""
    if not len(delays):
        return {f"{name}_events": 0}
    ranks = {"p50": 50, "p95": 95, "p99": 99, "max": 100}
    return {f"{name}_events": len(delays)} | {
        f"{name}_{rank}_s": round(float(np.percentile(delays, percent)), 3)
        for rank, percent in ranks.items()
    }


def started(process: subprocess.Popen[str], meter: TreeMeter, longest: float) -> float:
    """Wait until every stream runs and the start's work is done; returns the seconds it took."""
    began = time.monotonic()
    assert process.stdout is not None
    for line in process.stdout:
        if '"report"' in line:
            break
    while time.monotonic() - began < longest:
        before = meter.sample().cpu
        time.sleep(5)
        if meter.sample().cpu - before < 5 * QUIET_CORES:
            break
    return time.monotonic() - began


def measure(home: Path, options: argparse.Namespace, trigger: float) -> dict[str, float]:
    """Start the platform, leave it idle, load it, and follow the table."""
    settings = Settings(home=home)
    folder = Path(settings.landing_root) / "taxi" / "fares"
    command = [sys.executable, "-m", "bench.workload", "live", str(home), "3600"]
    home.mkdir(parents=True)
    with (home.parent / "workload.log").open("a") as log:
        process = subprocess.Popen(
            [*command, str(trigger)], stdout=subprocess.PIPE, stderr=log, text=True
        )
    meter = TreeMeter(psutil.Process(process.pid))
    try:
        start = started(process, meter, options.start)
        before = meter.sample().cpu
        time.sleep(options.idle)
        idle = (meter.sample().cpu - before) / options.idle
        reader = Reader(Path(settings.lake().path("taxi/fare_events")))
        began = time.time() + 1
        whole = options.warm + options.seconds
        arguments = [str(folder), str(options.rate), str(began), str(whole)]
        generator = subprocess.Popen(
            [sys.executable, "-m", "bench.latency", "--generate", *arguments]
        )
        before = cpu = meter.sample().cpu
        expected = round(options.rate * STEP) * round(whole / STEP)
        deadline = began + whole + options.patience
        warm = ended = False
        while time.time() < deadline:
            reader.read_new()
            if not warm and time.time() >= began + options.warm:
                warm, before = True, meter.sample().cpu
            if not ended and time.time() >= began + whole:
                ended, cpu = True, meter.sample().cpu
            if ended and sum(len(s.scheduled) for s in reader.samples) >= expected:
                break
            time.sleep(0.02)
        generator.wait()
    finally:
        meter.stop()
        for child in [*meter.root.children(recursive=True), meter.root]:
            child.kill()
        process.wait()
    middle = began + options.warm
    seen = sum(len(s.scheduled) for s in reader.samples)
    return {
        "streams": len(TOPOLOGY.streams),
        "trigger_s": trigger,
        "rate_per_s": options.rate,
        "start_s": round(start, 1),
        "idle_cores": round(idle, 3),
        "loaded_cores": round((cpu - before) / options.seconds, 3),
        "commits": len(reader.samples),
        "never_seen": expected - seen,
        **percentiles(reader.delays(middle, began + whole), "latency"),
        **percentiles(reader.delays(began, middle), "warming"),
        "peak_rss_mb": round(meter.cost.peak_rss / 1e6),
        "load_after": load(),
    }


def main() -> None:
    """Measure and report."""
    if sys.argv[1:2] == ["--generate"]:
        folder, rate, began, seconds = sys.argv[2:]
        generate(Path(folder), int(rate), float(began), float(seconds))
        return
    parser = options_of(__doc__)
    parser.add_argument("--rate", type=int, default=1000, help="events a second")
    parser.add_argument("--trigger", type=float, default=2.0, help="the platform's setting")
    parser.add_argument("--start", type=float, default=180, help="longest wait for quiet")
    parser.add_argument("--idle", type=float, default=30)
    parser.add_argument("--slow-trigger", type=float, default=10.0, help="0: not measured")
    parser.add_argument("--warm", type=float, default=240, help="seconds of load reported apart")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--patience", type=float, default=60, help="wait for the last commits")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        figures = measure(Path(name) / "home", options, options.trigger)
        if options.slow_trigger:
            slow = measure(Path(name) / "slow" / "home", options, options.slow_trigger)
            figures |= {f"slow_{figure}": value for figure, value in slow.items()}
    report("latency", figures, options.out)


if __name__ == "__main__":
    main()
