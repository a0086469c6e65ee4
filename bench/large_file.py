"""One large file of taxi records beside the same rows in files of 5 MB, and one core beside two.

    python -m bench large_file [--megabytes 200] [--formats csv json parquet] [--out FILE]

A cold process each admits what has landed, in a bounded run: the CPU seconds of its tree from the
opened session on, the wall time, and the peak memory of the driver's Python, through which no row
goes. What is admitted and quarantined must be the same rows however they were cut into files.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import psutil
from deltalake import DeltaTable

from assets.taxi.trips.ingest import TRIP_RECORDS
from assets.topology import TOPOLOGY
from bench.admission import AS_WRITTEN, difference, land_rows
from bench.figures import load, options_of, report
from bench.process_tree import TreeMeter, run_measured
from rivermark.runtime.spark.session import open_session
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings

COPY: Final = 5_000
"""Rows of the sample."""
PROBE: Final = 20 * COPY
SMALL: Final = 5_000_000
"""Bytes of the small files."""


def admit(home: Path, cores: int) -> None:
    """Admit what has landed, and print what it cost."""
    settings = Settings(home=home, master=f"local[{cores}]")
    spark = open_session(settings, "short")
    meter = TreeMeter(psutil.Process())
    before = meter.sample().cpu
    run_bounded(spark, settings, TOPOLOGY, [TRIP_RECORDS], run_id="bench")
    cost = meter.stop()
    # The high-water mark since exec: `ru_maxrss` begins with that of the process that forked.
    status = Path("/proc/self/status").read_text()
    peak = int(next(line for line in status.splitlines() if "VmHWM" in line).split()[1]) / 1000
    figures = {"cpu": cost.cpu - before, "wall": cost.wall, "driver_mb": round(peak)}
    sys.stdout.write(json.dumps(figures) + "\n")


def measure(folder: Path, form: str, rows: int, rows_a_file: int, cores: int) -> dict[str, Any]:
    """Land so many rows in files of so many, and admit them in a process of its own."""
    settings = Settings(home=folder)
    landing = Path(settings.landing_root) / "taxi" / "trips"
    land_rows(landing, rows, form, rows_a_file)
    command = [sys.executable, "-m", "bench.large_file", "--admit", str(folder)]
    _, (cost,) = run_measured([*command, "--cores", str(cores)], folder / "log")
    tables = [
        DeltaTable(settings.lake().path(table))
        for table in (TRIP_RECORDS.admitted, TRIP_RECORDS.quarantine)
    ]
    counts = [table.to_pyarrow_dataset().count_rows() for table in tables]
    assert sum(counts) == rows, f"{form}: {counts} admitted and quarantined of {rows}"
    return {
        "cpu_seconds": round(cost["cpu"], 1),
        "cpu_us_a_row": round(1e6 * cost["cpu"] / rows, 2),
        "wall_seconds": round(cost["wall"], 1),
        "driver_mb": cost["driver_mb"],
        "table_files": len(tables[0].file_uris()),
    }


def of_format(folder: Path, form: str, size: int) -> dict[str, Any]:
    """The same rows in one file and in small ones by both cores, and in one file by one core."""
    land_rows(folder / "probe", PROBE, form, PROBE)
    each = sum(path.stat().st_size for path in (folder / "probe").iterdir()) / PROBE
    rows, few = (max(1, round(n / each / COPY)) * COPY for n in (size, SMALL))
    runs = {"one_file": (rows, 2), "small_files": (few, 2), "one_file_one_core": (rows, 1)}
    costs = {
        name: measure(folder / name, form, rows, in_file, cores)
        for name, (in_file, cores) in runs.items()
    }
    if wrong := difference([folder / "one_file", folder / "small_files"]):
        raise SystemExit(f"{form}: {wrong} rows differ by how they were cut into files")
    one, small, alone = (costs[name] for name in runs)
    return {
        f"{form}_rows": rows,
        **{f"{form}_{run}_{k}": v for run, cost in costs.items() for k, v in cost.items()},
        f"{form}_large_to_small": round(one["cpu_us_a_row"] / small["cpu_us_a_row"], 2),
        f"{form}_one_core_to_two": round(alone["wall_seconds"] / one["wall_seconds"], 2),
    }


def main() -> None:
    """Measure and report."""
    parser = options_of(__doc__)
    parser.add_argument("--megabytes", type=int, default=200, help="size of the large file")
    parser.add_argument("--formats", nargs="+", choices=[*AS_WRITTEN], default=[*AS_WRITTEN])
    parser.add_argument("--admit", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--cores", type=int, default=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.admit:
        admit(options.admit, options.cores)
        return
    figures: dict[str, Any] = {"megabytes": options.megabytes, "load_before": load()}
    for form in options.formats:
        with tempfile.TemporaryDirectory() as name:
            figures |= of_format(Path(name), form, options.megabytes * 1_000_000)
    report("large_file", figures | {"load_after": load()}, options.out)


if __name__ == "__main__":
    main()
