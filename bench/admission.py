"""What admission costs: taxi records as CSV and as Parquet, and warm batches of JSON lines.

    python -m bench admission [--rows 1000000] [--out FILE]

The platform's own ingest of TLC's trip records (twenty rules, wall clock times of New York),
bounded runs of a cold process each: a tenth of the rows, then all of them, so that the start can be
told from the margin. The rows are those of a real month, moved in time and price from copy to copy
so that no value need be read only once. Every row must come in or be quarantined, and CSV must give
the rows that Parquet gives. CPU seconds and peak memory are those of the whole process tree.

Then batches of 1,000 and of 20,000 rides (the lines of `bench.peers`) are admitted in one process,
all tables written, after as many batches for warm-up; to land and to plan them is not counted.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import duckdb
import psutil
import pyarrow.parquet as pq
from deltalake import DeltaTable

from assets.taxi.trips.ingest import TRIP_RECORDS
from bench.figures import ROOT, load, options_of, report
from bench.peers.events import build, typed
from bench.peers.feed import json_lines
from bench.peers.jobs.streams import INGESTS
from bench.process_tree import TreeMeter, run_measured
from rivermark.ingest.admission import Admission
from rivermark.ingest.plan import BatchPlanner, planned_split
from rivermark.model.sink import Origin
from rivermark.runtime.spark.session import open_session
from rivermark.settings import Settings
from rivermark.testing.landing import land

SAMPLE: Final = ROOT / "assets" / "samples" / "tlc" / "yellow_tripdata_2025-02_sample5000.parquet"
ROWS_A_FILE: Final = 100_000
WARM_ROWS: Final = (1_000, 20_000)
BATCHES: Final = 10
FORMATS: Final = {"csv": "FORMAT csv, HEADER", "parquet": "FORMAT parquet"}
AS_WRITTEN: Final = {**FORMATS, "json": "FORMAT json"}


def land_rows(folder: Path, rows: int, form: str, rows_a_file: int = ROWS_A_FILE) -> None:
    """Write the sample again and again, each copy a second and a cent further on."""
    folder.mkdir(parents=True)
    written = AS_WRITTEN[form]
    sample = f"(SELECT *, row_number() OVER () - 1 AS n FROM '{SAMPLE}')"
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        copy = pq.read_metadata(SAMPLE).num_rows
        for number, first in enumerate(range(0, rows, rows_a_file)):
            begin, end = first // copy, min(first + rows_a_file, rows) // copy
            db.execute(f"""
                COPY (
                    SELECT * EXCLUDE (n, copy) REPLACE (
                        tpep_pickup_datetime + to_seconds(copy) AS tpep_pickup_datetime,
                        tpep_dropoff_datetime + to_seconds(copy) AS tpep_dropoff_datetime,
                        round(fare_amount + copy / 100, 2) AS fare_amount,
                        round(total_amount + copy / 100, 2) AS total_amount)
                    FROM {sample}, range({begin}, {end}) copies(copy)
                    ORDER BY copy, n)
                TO '{folder}/yellow_tripdata_2025-02_part{number:03d}.{form}' ({written})""")


def measure(folder: Path, form: str, rows: int) -> dict[str, float]:
    """Admit so many rows of a format in a cold process."""
    home = folder / f"{form}-{rows}"
    settings = Settings(home=home)
    land_rows(Path(settings.landing_root) / "taxi" / "trips", rows, form)
    command = [sys.executable, "-m", "bench.workload", "stream", str(home), TRIP_RECORDS.name]
    cost, _ = run_measured(command, folder / "log")
    counts = [
        DeltaTable(settings.lake().path(table)).to_pyarrow_dataset().count_rows()
        for table in (TRIP_RECORDS.admitted, TRIP_RECORDS.quarantine)
    ]
    assert sum(counts) == rows, f"{form}: {counts} admitted and quarantined of {rows}"
    return {f"{form}_{rows}_quarantined": counts[1], **cost.figures(f"{form}_{rows}")}


def difference(homes: Sequence[Path]) -> int:
    """Number of rows that one of two homes has admitted and the other has not.

    What names their file is left out, and the wall clock times as the file writes them.
    """
    with duckdb.connect() as db:
        for number, home in enumerate(homes):
            table = Settings(home=home).lake().path(TRIP_RECORDS.admitted)
            db.register(f"rows_{number}", DeltaTable(table).to_pyarrow_dataset())
        columns = "lambda c: c[1] <> '_' AND NOT c.ends_with('_local')"
        left = [f"SELECT COLUMNS({columns}) FROM rows_{number}" for number in range(2)]
        pairs = [" EXCEPT ALL ".join(pair) for pair in (left, left[::-1])]
        counts = [db.execute(f"SELECT count(*) FROM ({pair})").fetchall() for pair in pairs]
    return sum(int(count) for [(count,)] in counts)


def warm_batches(folder: Path) -> dict[str, float]:
    """CPU of a warm batch of JSON lines, in milliseconds, by its rows."""
    spark = open_session(Settings(home=folder), "long")
    ingest, figures = INGESTS["door"], {}
    for rows in WARM_ROWS:
        settings = Settings(home=folder / f"warm-{rows}")
        landing = Path(settings.landing_root)
        rides = build((2 * BATCHES + 1) * rows, seed=7)["rides"]
        lines = json_lines(typed("rides", rides).slice(0, 2 * BATCHES * rows))
        planner = BatchPlanner(settings.lake(), settings.landing_root, ingest, "bench")
        origin = Origin(ingest.name, 0, datetime.now(UTC), "bench")
        admission = Admission(spark, settings.lake(), ingest, planner.source, origin)
        meter, costs = TreeMeter(psutil.Process()), []
        for number in range(2 * BATCHES):
            part = lines[number * rows : (number + 1) * rows]
            land(landing / "rides" / f"{number:05d}.json", part)
            planner.poll()
            plan = DeltaTable(settings.lake().path(planner.table)).to_pyarrow_table().to_pylist()
            splits = [planned_split(row) for row in plan if row["arrival"] == number]
            before = meter.sample().cpu
            admission.admit(splits, number)
            costs.append(meter.sample().cpu - before)
        meter.stop()
        figures[f"warm_{rows}_cpu_ms"] = round(1000 * statistics.mean(costs[BATCHES:]), 1)
    spark.stop()
    return figures


def main() -> None:
    """Measure and report."""
    parser = options_of(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    rows = options.rows
    if rows % (10 * pq.read_metadata(SAMPLE).num_rows):
        parser.error("--rows: a tenth of them must be whole copies of 5,000 rows")
    figures: dict[str, float] = {"rows": rows, "load_before": load()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for form in FORMATS:
            for count in (rows // 10, rows):
                figures |= measure(folder, form, count)
            small, whole = (figures[f"{form}_{n}_cpu_seconds"] for n in (rows // 10, rows))
            figures[f"{form}_cpu_seconds_a_million"] = round((whole - small) / (rows * 0.9e-6), 2)
        if wrong := difference([folder / f"{form}-{rows // 10}" for form in FORMATS]):
            raise SystemExit(f"CSV and Parquet differ in {wrong} rows")
        figures |= warm_batches(folder)
    report("admission", figures, options.out)


if __name__ == "__main__":
    main()
