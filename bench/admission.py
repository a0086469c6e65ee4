"""What admitting taxi records costs: TLC's columns as CSV and as Parquet, twenty rules, two zones.

    python -m bench admission [--rows 1000000] [--out FILE]

The platform's own ingest of trip records, bounded runs of a cold process each: a tenth of the rows,
then all of them, so that the start can be told from the margin. The rows are those of a real month,
moved in time and price from copy to copy so that no value need be read only once. Every row must
come in or be quarantined, and CSV must give the rows that Parquet gives. CPU seconds and peak
memory are those of the whole process tree.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

import duckdb
import pyarrow.parquet as pq
from deltalake import DeltaTable

from assets.taxi.trips.ingest import TRIP_RECORDS
from bench.figures import ROOT, load, options_of, report
from bench.process_tree import run_measured
from rivermark.settings import Settings

SAMPLE: Final = ROOT / "assets" / "samples" / "tlc" / "yellow_tripdata_2025-02_sample5000.parquet"
ROWS_A_FILE: Final = 100_000
FORMATS: Final = {"csv": "FORMAT csv, HEADER", "parquet": "FORMAT parquet"}


def land_rows(folder: Path, rows: int, form: str) -> None:
    """Write the sample again and again, each copy a second and a cent further on."""
    folder.mkdir(parents=True)
    sample = f"(SELECT *, row_number() OVER () - 1 AS n FROM '{SAMPLE}')"
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        copy = pq.read_metadata(SAMPLE).num_rows
        for number, first in enumerate(range(0, rows, ROWS_A_FILE)):
            begin, end = first // copy, min(first + ROWS_A_FILE, rows) // copy
            db.execute(f"""
                COPY (
                    SELECT * EXCLUDE (n, copy) REPLACE (
                        tpep_pickup_datetime + to_seconds(copy) AS tpep_pickup_datetime,
                        tpep_dropoff_datetime + to_seconds(copy) AS tpep_dropoff_datetime,
                        round(fare_amount + copy / 100, 2) AS fare_amount,
                        round(total_amount + copy / 100, 2) AS total_amount)
                    FROM {sample}, range({begin}, {end}) copies(copy)
                    ORDER BY copy, n)
                TO '{folder}/yellow_tripdata_2025-02_part{number:03d}.{form}' ({FORMATS[form]})""")


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


def difference(folder: Path, rows: int) -> int:
    """How many rows one format gives that the other does not; what names their file is left out."""
    with duckdb.connect() as db:
        for form in FORMATS:
            table = Settings(home=folder / f"{form}-{rows}").lake().path(TRIP_RECORDS.admitted)
            db.register(f"{form}_rows", DeltaTable(table).to_pyarrow_dataset())
        left = [f"SELECT COLUMNS('^[^_]') FROM {form}_rows" for form in FORMATS]
        pairs = [" EXCEPT ALL ".join(pair) for pair in (left, left[::-1])]
        counts = [db.execute(f"SELECT count(*) FROM ({pair})").fetchall() for pair in pairs]
    return sum(int(count) for [(count,)] in counts)


def main() -> None:
    """Measure and report."""
    parser = options_of(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    rows = options.rows
    figures: dict[str, float] = {"rows": rows, "load_before": load()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for form in FORMATS:
            for count in (rows // 10, rows):
                figures |= measure(folder, form, count)
            small, whole = (figures[f"{form}_{n}_cpu_seconds"] for n in (rows // 10, rows))
            figures[f"{form}_cpu_seconds_a_million"] = round((whole - small) / (rows * 0.9e-6), 2)
        if wrong := difference(folder, rows // 10):
            raise SystemExit(f"CSV and Parquet differ in {wrong} rows")
    report("admission", figures, options.out)


if __name__ == "__main__":
    main()
