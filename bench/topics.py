"""Event in a topic to its admitted row, and to the window that it closes; here and in Flink SQL.

    python -m bench topics [--only ours,flink] [--rates 1000,5000,20000] [--out FILE]

Four processes that do not wait for each other: a broker; the system that is measured, which reads
fares from four partitions, keeps each and sums tips per driver and window of five seconds; a
generator, which sends them by a schedule fixed beforehand; and this one, which looks for committed
rows every 20 ms: in the tables' logs, or Flink's files. A sample is the moment at which rows are
seen less when an event was due: for a row its own, for a window the first event after its end and
the lateness of two seconds. So a generator that is behind counts against the system.

One rate comes after the other in one process, each when all before it was seen. The first
`--warm` seconds are for the compiler. At last `--burst` events are sent at once, as quickly as the
generator can; it takes about a core. What was seen must be what the schedule says, each row once,
or there are no figures.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.figures import ROOT, load, options_of, report
from bench.latency import files_of_folder, files_of_log, percentiles, started
from bench.peers import environment
from bench.process_tree import TreeMeter, end_tree, start_measured
from bench.topic_load import LATENESS_SECONDS, MICROS, PARTITIONS, WINDOW_SECONDS, Phase, windows_of
from rivermark.settings import Settings
from setup.kafka_broker import Broker
from setup.local_server import free_port

SYSTEMS: Final = ("ours", "flink")
FLINK_KAFKA: Final = "flink-kafka"
"""The set of JARs with Flink's connector."""
LATENESS: Final = LATENESS_SECONDS * MICROS
WARM_RATE: Final = 5_000
BURST_SECONDS: Final = 4 * WINDOW_SECONDS
"""Over which the times of the burst's events are spread, however quickly they are sent."""
CLOSING_SECONDS: Final = 2 * WINDOW_SECONDS
"""How long events go on after the burst, so that its windows close."""


@dataclass
class Rows:
    """The rows of a table as they were committed: when each part was seen (microseconds)."""

    new_files: Callable[[], Iterable[Path]]
    columns: list[str]
    parts: list[tuple[float, pa.Table]] = field(default_factory=list)
    count: int = 0

    def read_new(self) -> None:
        """Read the commits that were not seen before."""
        now = time.time() * MICROS
        for file in self.new_files():
            rows = pq.read_table(file, columns=self.columns)
            self.parts.append((now, rows))
            self.count += rows.num_rows

    def column(self, name: str) -> Any:
        """All values of a column, moments as microseconds."""
        parts = [column_of(rows, name) for _, rows in self.parts]
        return np.concatenate(parts) if parts else np.array([], dtype=np.int64)

    def seen(self) -> Any:
        """When each row was seen."""
        return np.repeat([at for at, _ in self.parts], [rows.num_rows for _, rows in self.parts])


def column_of(rows: pa.Table, name: str) -> Any:
    """A column's values, moments as microseconds."""
    column = rows[name]
    if pa.types.is_timestamp(column.type):
        column = pc.cast(column.cast(pa.timestamp("us", "UTC")), "int64")
    return column.to_numpy()


@dataclass
class Measured:
    """A running system, what is sent to it and what is seen of it."""

    brokers: str
    topic: str
    process: subprocess.Popen[str]
    meter: TreeMeter
    fares: Rows
    tips: Rows
    patience: float
    phases: list[Phase] = field(default_factory=list)

    def send(self, rate: int, events: int, *, paced: bool = True) -> tuple[Phase, float]:
        """Send a phase, and wait until all its rows were seen; returns the CPU seconds it took."""
        first = sum(phase.events for phase in self.phases)
        # The generator needs a second or two to start, and no event is older than one before it.
        begin = max([round((time.time() + 3) * MICROS), *(phase.end for phase in self.phases)])
        phase = Phase(begin, rate, events, first, paced)
        self.phases.append(phase)
        numbers = [str(number) for number in (begin, rate, events, first)]
        command = [sys.executable, "-m", "bench.topic_load", self.brokers, self.topic, *numbers]
        generator = subprocess.Popen([*command, "paced" if paced else "at-once"], cwd=ROOT)
        before = self.meter.sample().cpu
        deadline = phase.end / MICROS + self.patience
        self.follow(lambda: self.fares.count >= first + events, deadline)
        if generator.wait():
            raise SystemExit("the generator failed")
        return phase, self.meter.sample().cpu - before

    def follow(self, all_seen: Callable[[], bool], deadline: float) -> None:
        """Read what is committed until all was seen, or that time has come."""
        while not all_seen() and time.time() < deadline:
            if self.process.poll() is not None:
                raise SystemExit("the measured system has ended")
            self.fares.read_new()
            self.tips.read_new()
            time.sleep(0.02)

    def latencies(self, phase: Phase) -> tuple[Any, Any]:
        """Seconds from due to seen: of the rows of a phase, and of windows that closed in it."""
        delays = []
        for rows, due in (
            (self.fares, self.fares.column("event_time")),
            (self.tips, self.tips.column("window_end_ms") * 1000 + LATENESS),
        ):
            within = (due >= phase.began) & (due < phase.end)
            delays.append((rows.seen()[within] - due[within]) / MICROS)
        return delays[0], delays[1]

    def sustained(self, burst: Phase) -> tuple[float, float]:
        """Events a second of the burst: to their rows, and to the windows that it closed."""
        rides, seen = self.fares.column("ride_id"), self.fares.seen()
        of_burst = (rides >= burst.first) & (rides < burst.first + burst.events)
        ends, closed_at = self.tips.column("window_end_ms") * 1000, self.tips.seen()
        last = ends[(ends > burst.began) & (ends + LATENESS < burst.end)].max()
        in_windows = int((burst.due() < last).sum())
        to_rows = seen[of_burst].max() - burst.began
        to_windows = closed_at[(ends > burst.began) & (ends <= last)].max() - burst.began
        return burst.events / to_rows * MICROS, in_windows / to_windows * MICROS


def difference(phases: Sequence[Phase], fares: Rows, tips: Rows) -> str:
    """How what was seen differs from what the schedule says, in words; empty when nothing does."""
    sent = sum(phase.events for phase in phases)
    rides = np.sort(fares.column("ride_id"))
    if not np.array_equal(rides, np.arange(sent)):
        once = np.unique(rides)
        return (
            f"{sent - len(once):,} of {sent:,} rows are missing, {len(rides) - len(once):,} twice"
        )
    closed = closed_by(phases)
    expected = windows_of(phases, closed)
    columns = [tips.column(name).tolist() for name in tips.columns]
    windows = [row for row in zip(*columns, strict=True) if row[0] * 1000 <= closed]
    if sorted(windows) != sorted((*key, *values) for key, values in expected.items()):
        return f"{len(windows):,} windows are not the {len(expected):,} of the schedule"
    return ""


def closed_by(phases: Sequence[Phase]) -> int:
    """The moment (microseconds) by which windows that end are certainly closed at last."""
    return phases[-1].end - LATENESS - MICROS


def command_of(system: str, home: Path, brokers: str, topic: str) -> list[str]:
    """The command that runs a system."""
    if system == "ours":
        job = ("bench.peers.jobs.ours_topics", str(home), brokers, topic)
        return [sys.executable, "-m", *job]
    job = ("bench.peers.jobs.flink_topics", str(home / "out"), brokers, topic)
    return [str(environment.python_of("flink")), "-m", *job]


def tables_of(system: str, home: Path) -> tuple[Rows, Rows]:
    """Where a system's rows and windows are committed."""
    if system == "ours":
        lake = Settings(home=home).lake()
        sources = [files_of_log(Path(lake.path(name))) for name in ("bench/fares", "bench/tips")]
    else:
        sources = [files_of_folder(home / "out" / name) for name in ("admitted", "tips")]
    fares = Rows(sources[0], ["ride_id", "event_time"])
    return fares, Rows(sources[1], ["window_end_ms", "driver_id", "tips", "fares"])


def make_topic(brokers: str, topic: str) -> None:
    """Make the topic."""
    # The rest of this module needs no client.
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": brokers})
    for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        future.result(30)


def measure(system: str, home: Path, brokers: str, options: Any) -> dict[str, float]:
    """Start a system, send it each phase, and compare what it made with the schedule."""
    home.mkdir(parents=True)
    topic = f"bench.fares.{system}"
    make_topic(brokers, topic)
    variables = environment.variables("flink", FLINK_KAFKA) if system == "flink" else {}
    process = start_measured(
        command_of(system, home, brokers, topic), home / "workload.log", variables
    )
    meter = TreeMeter(psutil.Process(process.pid))
    measured = Measured(brokers, topic, process, meter, *tables_of(system, home), options.patience)
    try:
        figures = {"start_s": round(started(process, meter, options.start), 1)}
        assert process.stdout is not None
        # What it still says is not read, but a full pipe would stop it.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        figures["load_before"] = load()
        figures |= figures_of(measured, options)
    except SystemExit as problem:
        log_end = (home / "workload.log").read_text()[-3000:]
        raise SystemExit(f"{system}: {problem}\n{log_end}") from None
    finally:
        meter.stop()
        end_tree(process)
    figures |= {"peak_rss_mb": round(meter.cost.peak_rss / 1e6), "load_after": load()}
    return {f"{system}_{name}": value for name, value in figures.items()}


def figures_of(measured: Measured, options: Any) -> dict[str, float]:
    """Send each phase; their figures, once all was compared."""
    measured.send(WARM_RATE, round(WARM_RATE * options.warm))
    at_rates = {
        rate: measured.send(rate, round(rate * options.seconds))
        for rate in map(int, options.rates.split(","))
    }
    rate_of_times = options.burst // BURST_SECONDS
    burst, cpu_of_burst = measured.send(rate_of_times, options.burst, paced=False)
    measured.send(1_000, 1_000 * CLOSING_SECONDS)
    windows = len(windows_of(measured.phases, closed_by(measured.phases)))
    deadline = time.time() + measured.patience
    measured.follow(lambda: measured.tips.count >= windows, deadline)
    if wrong := difference(measured.phases, measured.fares, measured.tips):
        raise SystemExit(wrong)
    rows, in_windows = measured.sustained(burst)
    figures: dict[str, float] = {
        "sustained_rows_per_s": round(rows, -2),
        "sustained_windows_per_s": round(in_windows, -2),
        "burst_cpu_s_per_million": round(cpu_of_burst / burst.events * 1e6, 1),
    }
    for rate, (phase, cpu) in at_rates.items():
        to_rows, to_windows = measured.latencies(phase)
        figures |= percentiles(to_rows, f"{rate}_rows")
        figures |= percentiles(to_windows, f"{rate}_windows")
        figures[f"{rate}_cores"] = round(cpu / options.seconds, 3)
    return figures


def flink_is_ready() -> bool:
    """Whether Flink and its connector have been fetched."""
    return environment.ready("flink") and bool(environment.jars(FLINK_KAFKA))


def main() -> None:
    """Measure and report."""
    parser = options_of(__doc__)
    parser.add_argument("--only", default=",".join(SYSTEMS), help="systems, by commas")
    parser.add_argument("--rates", default="1000,5000,20000", help="events a second, by commas")
    parser.add_argument("--start", type=float, default=120, help="longest wait for quiet")
    parser.add_argument("--warm", type=float, default=45)
    parser.add_argument("--seconds", type=float, default=45, help="of each rate")
    parser.add_argument("--burst", type=int, default=1_000_000, help="events sent at once")
    parser.add_argument("--patience", type=float, default=90, help="wait for the last commits")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder) / "kafka", free_port(), dies_with_parent=True)
        broker.start()
        try:
            for system in options.only.split(","):
                if system == "flink" and not flink_is_ready():
                    print("flink: not measured, `python -m bench peers --setup` fetches it")
                    continue
                figures |= measure(system, Path(folder) / system, broker.address, options)
        finally:
            broker.stop()
    report("topics", figures, options.out)


if __name__ == "__main__":
    main()
