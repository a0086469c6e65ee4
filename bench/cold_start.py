"""What starting costs: imports, a short bounded run, the demo, and a day computed again.

    python -m bench cold_start [--only imports bounded demo recompute] [--out FILE]

Each is a process of its own, cold; CPU seconds and peak memory are those of its whole tree. The
recompute counts only when it leaves the very rows that the stream wrote.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import duckdb
import psutil
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from assets.taxi.cleansing import CLEAN_FARES
from assets.taxi.ingest import FIRST_DAY
from assets.taxi.tips import DRIVER_TIPS
from assets.taxi.world.training import land_training
from bench.figures import write_figures
from bench.process_tree import Cost, TreeMeter
from rivermark.lake.create import create_table
from rivermark.settings import Settings
from rivermark.stream import table_of

CONSOLE: Final = str(Path(sys.executable).with_name("rivermark"))
IMPORTS: Final = {
    "code_location": [sys.executable, "-c", "import platform_defs.definitions"],
    "process_core": [sys.executable, "-c", "import rivermark.process"],
    "help": [CONSOLE, "--help"],
    "status": [CONSOLE, "status", "--home"],
}
DAY: Final = FIRST_DAY + timedelta(days=1)


def cost_of(command: list[str], log: Path) -> Cost:
    """What a command costs; ends the measurement when it fails."""
    with log.open("a") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        meter = TreeMeter(psutil.Process(process.pid))
        code = process.wait()
        cost = meter.stop()
    if code:
        raise SystemExit(f"{' '.join(command)} failed:\n{log.read_text()[-2000:]}")
    return cost


def told(name: str, cost: Cost) -> dict[str, float]:
    """The figures of a cost."""
    return {
        f"{name}_wall_seconds": round(cost.wall, 2),
        f"{name}_cpu_seconds": round(cost.cpu, 2),
        f"{name}_peak_rss_mb": round(cost.peak_rss / 1e6),
    }


def measure_imports(folder: Path, repeats: int) -> dict[str, float]:
    """Median of what starts no engine; none of them may load a JVM."""
    found: dict[str, float] = {}
    for name, command in IMPORTS.items():
        whole = [*command, str(folder / "nothing")] if command[-1] == "--home" else command
        costs = [cost_of(whole, folder / "log") for _ in range(repeats)]
        found[f"{name}_wall_seconds"] = round(statistics.median(c.wall for c in costs), 2)
        found[f"{name}_cpu_seconds"] = round(statistics.median(c.cpu for c in costs), 2)
    return found


def measure_bounded(folder: Path, events: int) -> dict[str, float]:
    """Ride and fare events from files to hourly winners; three events a ride."""
    home = folder / "bounded"
    landing = Path(Settings(home=home).landing_root)
    land_training(landing, events // 3, blocks_a_file=5000, fares_a_file=25_000)
    cost = cost_of([sys.executable, "-m", "bench.workload", "bounded", str(home)], folder / "log")
    return {"bounded_events": 3 * (events // 3), **told("bounded", cost)}


def measure_demo(folder: Path) -> dict[str, float]:
    """The demo as a person runs it; it fails unless all its checks hold."""
    command = [CONSOLE, "demo", "--home", str(folder / "demo")]
    return told("demo", cost_of(command, folder / "log"))


def measure_recompute(folder: Path, events: int) -> dict[str, Any]:
    """Tips per driver and hour of a day of fares: as a stream, then the same day again."""
    home = folder / "recompute"
    settings = Settings(home=home)
    write_fares(settings, events)
    command = [sys.executable, "-m", "bench.workload"]
    streamed = cost_of([*command, "stream", str(home), DRIVER_TIPS.name], folder / "log")
    before = rows_of_day(settings)
    again = cost_of(
        [*command, "reprocess", str(home), DRIVER_TIPS.name, DAY.isoformat()], folder / "log"
    )
    after = rows_of_day(settings)
    if not before or before != after:
        raise SystemExit(f"the recompute left {len(after)} rows, the stream wrote {len(before)}")
    return {
        "recompute_events": events,
        "recompute_rows": len(after),
        **told("streamed_day", streamed),
        **told("recomputed_day", again),
        "recompute_times_cheaper_cpu": round(streamed.cpu / again.cpu, 2),
    }


def write_fares(settings: Settings, events: int, commits: int = 20) -> None:
    """A day of fares, evenly spread, in event time; and one three days later, which closes it."""
    lake, table = settings.lake(), table_of(CLEAN_FARES)
    create_table(lake, table)
    step = timedelta(days=1) / events
    began = datetime.combine(DAY, datetime.min.time(), UTC)
    for part in range(commits):
        numbers = range(part * events // commits, (part + 1) * events // commits)
        append_fares(lake.path(table), [(n, began + n * step) for n in numbers])
    append_fares(lake.path(table), [(events, began + timedelta(days=3))])


def append_fares(path: str, fares: list[tuple[int, datetime]]) -> None:
    """One commit of fares, each by its number and moment."""
    names = ["ride_id", "taxi_id", "driver_id", "event_time", "payment_type"]
    names += ["tip", "tolls", "total_fare"]
    money = pa.decimal128(12, 2)
    driver = pa.array([n * 7919 % 5000 for n, _ in fares])
    tips = pa.array([Decimal(n % 900) / 100 for n, _ in fares], money)
    columns = [
        pa.array([n for n, _ in fares]),
        driver,
        driver,
        pa.array([at for _, at in fares], pa.timestamp("us", "UTC")),
        pa.array(["CARD"] * len(fares)),
        tips,
        pa.array([Decimal(0)] * len(fares), money),
        tips,
    ]
    write_deltalake(DeltaTable(path), pa.table(columns, names), mode="append")


def rows_of_day(settings: Settings) -> list[tuple[Any, ...]]:
    """The stream's rows of the day, sorted."""
    found = DeltaTable(settings.lake().path(table_of(DRIVER_TIPS))).to_pyarrow_table()
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("found", found)
        query = "SELECT * FROM found WHERE window_start::DATE = ? ORDER BY ALL"
        return database.execute(query, [DAY]).fetchall()


def main() -> None:
    """Measure what was asked for, print it, and keep it where it was asked for."""
    parts = ("imports", "bounded", "demo", "recompute")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--events", type=int, default=100_000, help="of the bounded run")
    parser.add_argument("--day", type=int, default=1_000_000, help="events of the recomputed day")
    parser.add_argument("--repeats", type=int, default=3, help="of the imports")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    figures: dict[str, Any] = {"load_before": round(os.getloadavg()[0], 1)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "imports" in options.only:
            figures |= measure_imports(folder, options.repeats)
        if "bounded" in options.only:
            figures |= measure_bounded(folder, options.events)
        if "demo" in options.only:
            figures |= measure_demo(folder)
        if "recompute" in options.only:
            figures |= measure_recompute(folder, options.day)
    for key, value in figures.items():
        print(f"{key:34} {value}")
    if options.out:
        write_figures(options.out, "cold_start", figures)


if __name__ == "__main__":
    main()
