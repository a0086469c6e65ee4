"""What starting costs: imports, a short bounded run, the demo.

    python -m bench cold_start [--only imports bounded demo] [--out FILE]

Each is a process of its own, cold; CPU seconds and peak memory are those of its whole tree.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import psutil

from bench.figures import write_figures
from bench.process_tree import Cost, TreeMeter
from rivermark.settings import Settings
from simulator.taxi.training import land_training

CONSOLE: Final = str(Path(sys.executable).with_name("rivermark"))
IMPORTS: Final = {
    "code_location": [sys.executable, "-c", "import platform_defs.definitions"],
    "process_core": [sys.executable, "-c", "import rivermark.process"],
    "help": [CONSOLE, "--help"],
    "status": [CONSOLE, "status", "--home"],
}


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


def main() -> None:
    """Measure what was asked for, print it, and keep it where it was asked for."""
    parts = ("imports", "bounded", "demo")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--events", type=int, default=100_000, help="of the bounded run")
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
    for key, value in figures.items():
        print(f"{key:34} {value}")
    if options.out:
        write_figures(options.out, "cold_start", figures)


if __name__ == "__main__":
    main()
