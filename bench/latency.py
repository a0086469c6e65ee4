"""Event to admitted table: how long after its own time a row can be read, here and in Flink SQL.

    python -m bench latency [--only all,one,flink,one_fast,flink_fast] [--timeline] [--out FILE]

Three processes that do not wait for each other: the system that is measured; a generator, which
lands fares in files of half a second on a schedule fixed beforehand; and this one, which looks
every 20 ms for rows that were committed: in the table's log, or Flink's files. A sample is the
moment at which rows are seen less an event's scheduled time, for every event, so up to half a
second of each is the wait for its file. Scenarios:

- `all`: every stream of the platform is live, 1,000 events a second; first nothing arrives, which
  is measured too;
- `one`, `flink`: the ingest of fares alone, and the same as a job of Flink SQL;
- `one_fast`, `flink_fast`: 10,000 events a second.

A new process is slow for minutes, while its JVM compiles what runs often: the first `--warm`
seconds of load are reported apart (twice as long with all streams). With `--timeline` it is printed
what each file waited for on its way, the slowest ones above all (`bench.timeline`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from assets.topology import TOPOLOGY
from bench import timeline
from bench.figures import load, options_of, report
from bench.peers import environment
from bench.process_tree import TreeMeter, end_tree, start_measured
from rivermark.settings import Settings
from rivermark.testing.landing import land
from simulator.landing.json_lines import json_line

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
    """Follows the admitted rows, independently of who writes them.

    `new_files` yields the files that were committed since it was called last.
    """

    new_files: Callable[[], Iterable[Path]]
    samples: list[Sample] = field(default_factory=list)

    def read_new(self) -> None:
        """Read the commits that were not seen before."""
        now = time.time()
        for file in self.new_files():
            times = pq.read_table(file, columns=["event_time"])["event_time"]
            micros = pc.cast(times.cast(pa.timestamp("us", "UTC")), "int64").to_numpy()
            self.samples.append(Sample(now, micros / 1e6))

    def delays(self, first: float, last: float) -> Any:
        """Seconds from schedule to sight, of all events scheduled in the time between."""
        delays = [
            s.at - s.scheduled[(s.scheduled >= first) & (s.scheduled < last)] for s in self.samples
        ]
        return np.concatenate(delays) if delays else np.array([])


def files_of_log(table: Path) -> Callable[[], Iterable[Path]]:
    """New files of a Delta table, by its log alone."""
    version = 0

    def new_files() -> Iterable[Path]:
        nonlocal version
        while (log := table / "_delta_log" / f"{version:020d}.json").exists():
            actions = [json.loads(line) for line in log.read_text().splitlines()]
            version += 1
            added = [action["add"] for action in actions if "add" in action]
            # What upkeep joins was there before.
            yield from (table / add["path"] for add in added if add["dataChange"])

    return new_files


def files_of_folder(folder: Path) -> Callable[[], Iterable[Path]]:
    """New files of a folder in which uncommitted ones begin with a dot, as Flink's do."""
    seen: set[str] = set()

    def new_files() -> Iterable[Path]:
        names = {file.name for file in folder.glob("part-*")} - seen
        seen.update(names)
        return [folder / name for name in names]

    return new_files


@dataclass(frozen=True)
class Scenario:
    """Who is measured and under which load; `streams` are the platform's, empty for Flink's job."""

    streams: tuple[str, ...]
    rate: int = 1_000


FARES: Final = "taxi/fare_events"
PAUSES: Final = "pauses.log"
"""What the JVM's collector wrote of itself, below a home."""
SCENARIOS: Final = {
    "all": Scenario(tuple(stream.name for stream in TOPOLOGY.streams)),
    "one": Scenario((FARES,)),
    "flink": Scenario(()),
    "one_fast": Scenario((FARES,), 10_000),
    "flink_fast": Scenario((), 10_000),
}


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


def measured(
    scenario: Scenario, home: Path, *, timed: bool
) -> tuple[list[str], Path, Reader, dict[str, str]]:
    """The command to be measured, where it looks for files, its reader, and its environment."""
    if scenario.streams:
        settings = Settings(home=home)
        mode = "timed" if timed else "live"
        command = [sys.executable, "-m", "bench.workload", mode, str(home), *scenario.streams]
        landing = Path(settings.landing_root) / "taxi" / "fares"
        table = Path(settings.lake().path(FARES))
        pauses = f"-Xlog:gc:file={home / PAUSES}:utctime"
        variables = {"JDK_JAVA_OPTIONS": pauses} if timed else {}
        return command, landing, Reader(files_of_log(table)), variables
    landing, out = home / "landing", home / "out"
    landing.mkdir()
    job = ["-m", "bench.peers.jobs.flink_live", str(landing), str(out)]
    command = [str(environment.python_of("flink")), *job]
    return command, landing, Reader(files_of_folder(out)), environment.variables()


def measure(home: Path, options: argparse.Namespace, scenario: Scenario) -> dict[str, float]:
    """Start what is measured, leave it idle, load it, and follow the rows."""
    home.mkdir(parents=True)
    command, landing, reader, variables = measured(scenario, home, timed=options.timeline)
    process = start_measured(command, home / "workload.log", variables)
    meter = TreeMeter(psutil.Process(process.pid))
    warming = options.warm * (2 if len(scenario.streams) > 1 else 1)
    try:
        start = started(process, meter, options.start)
        before = meter.sample().cpu
        time.sleep(options.idle)
        idle = (meter.sample().cpu - before) / options.idle
        began = time.time() + 1
        whole = warming + options.seconds
        arguments = [str(landing), str(scenario.rate), str(began), str(whole)]
        generator = subprocess.Popen(
            [sys.executable, "-m", "bench.latency", "--generate", *arguments]
        )
        before = cpu = meter.sample().cpu
        expected = round(scenario.rate * STEP) * round(whole / STEP)
        deadline = began + whole + options.patience
        warm = ended = False
        while time.time() < deadline and process.poll() is None:
            reader.read_new()
            if not warm and time.time() >= began + warming:
                warm, before = True, meter.sample().cpu
            if not ended and time.time() >= began + whole:
                ended, cpu = True, meter.sample().cpu
            if ended and sum(len(s.scheduled) for s in reader.samples) >= expected:
                break
            time.sleep(0.02)
        generator.wait()
        if process.poll() is not None:
            raise SystemExit(f"ended early:\n{(home / 'workload.log').read_text()[-3000:]}")
    finally:
        meter.stop()
        end_tree(process)
    middle = began + warming
    if options.timeline and scenario.streams:
        print(steps(home, began, middle, began + whole), flush=True)
    seen = sum(len(s.scheduled) for s in reader.samples)
    return {
        "streams": len(scenario.streams),
        "rate_per_s": scenario.rate,
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


def steps(home: Path, began: float, first: float, last: float) -> str:
    """What the files of the measured time waited for, as a table."""
    notes = [json.loads(line) for line in (home / "notes.jsonl").read_text().splitlines()]

    def scheduled(name: str) -> float:
        return began + (int(name.removeprefix("latency-").removesuffix(".json")) + 1) * STEP

    ways = timeline.ways(notes, FARES, scheduled)
    within = [way for way in ways if first <= way.scheduled - STEP < last]
    return timeline.table(within, notes, timeline.pauses(home / PAUSES))


def main() -> None:
    """Measure and report."""
    if sys.argv[1:2] == ["--generate"]:
        folder, rate, began, seconds = sys.argv[2:]
        generate(Path(folder), int(rate), float(began), float(seconds))
        return
    parser = options_of(__doc__)
    parser.add_argument("--only", default=",".join(SCENARIOS), help="scenarios, by commas")
    parser.add_argument("--start", type=float, default=180, help="longest wait for quiet")
    parser.add_argument("--idle", type=float, default=10)
    parser.add_argument("--warm", type=float, default=45, help="seconds of load reported apart")
    parser.add_argument("--seconds", type=float, default=45)
    parser.add_argument("--timeline", action="store_true", help="what each file waited for")
    parser.add_argument("--patience", type=float, default=60, help="wait for the last commits")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    for name in options.only.split(","):
        if not SCENARIOS[name].streams and not environment.ready("flink"):
            print(f"{name}: not measured, `python -m bench peers --setup` fetches Flink")
            continue
        with tempfile.TemporaryDirectory() as folder:
            measures = measure(Path(folder) / "home", options, SCENARIOS[name])
        figures |= {f"{name}_{figure}": value for figure, value in measures.items()}
    report("latency", figures, options.out)


if __name__ == "__main__":
    main()
