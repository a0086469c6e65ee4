"""A closed day computed again, against streaming it and against DuckDB on the same files.

    python -m bench backfill [--day EVENTS] [--batches N] [--short] [--out FILE]

Tips per driver and hour of a day of fares. The day is streamed twice: drained at once, and as it
comes, a commit at a time. Then it is computed again, compared and replaced (`reprocess`). DuckDB
reads the same files and writes Parquet. Each is a cold process; CPU seconds and peak memory are
those of its whole tree. All must give the same rows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from assets.taxi.cleansing import CLEAN_FARES
from assets.taxi.ingest import FIRST_DAY
from assets.taxi.tips import DRIVER_TIPS
from bench.figures import load, options_of, report
from bench.process_tree import Cost, run_measured
from rivermark.lake.schema import create_table
from rivermark.model.stream import table_of
from rivermark.settings import Settings

DAY: Final = FIRST_DAY + timedelta(days=1)
WORK: Final = [sys.executable, "-m", "bench.workload"]
SQL: Final = """
COPY (
    SELECT driver_id, time_bucket(INTERVAL 1 HOUR, event_time) AS window_start,
           time_bucket(INTERVAL 1 HOUR, event_time) + INTERVAL 1 HOUR AS window_end,
           sum(tip)::DECIMAL(12, 2) AS tips, count(*) AS fares
    FROM fares WHERE event_time >= $start AND event_time < $end GROUP BY ALL
) TO '{out}' (FORMAT parquet)
"""


def write_fares(settings: Settings, events: int, commits: int) -> None:
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
    tips = DeltaTable(settings.lake().path(table_of(DRIVER_TIPS))).to_pyarrow_table()
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("tips", tips)
        query = "SELECT * FROM tips WHERE window_start::DATE = ? ORDER BY ALL"
        return database.execute(query, [DAY]).fetchall()


def by_duckdb(home: Path) -> None:
    """The same question to DuckDB, on the same files, with as many threads as Spark has cores."""
    fares = DeltaTable(Settings(home=home).lake().path(table_of(CLEAN_FARES)))
    start = datetime.combine(DAY, datetime.min.time(), UTC)
    with duckdb.connect(config={"threads": 2}) as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("fares", fares.to_pyarrow_dataset())
        values = {"start": start, "end": start + timedelta(days=1)}
        database.execute(SQL.format(out=home / "duckdb.parquet"), values)


def duckdb_rows(home: Path) -> list[tuple[Any, ...]]:
    """What DuckDB wrote, in the order of `rows_of_day`."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        path = str(home / "duckdb.parquet")
        return database.execute("SELECT * FROM read_parquet(?) ORDER BY ALL", [path]).fetchall()


def measure(folder: Path, events: int, batches: int) -> dict[str, Any]:
    """All ways, one after the other; ends with an error where one has other rows."""
    home, name = folder / "home", DRIVER_TIPS.name
    settings = Settings(home=home)
    write_fares(settings, events, commits=batches)
    figures: dict[str, Any] = {"backfill_events": events, "streamed_batches": batches}

    def run(way: str, command: list[str]) -> Cost:
        cost, _ = run_measured(command, folder / "log")
        figures.update(cost.figures(way))
        return cost

    os.environ["RIVERMARK_FILES_PER_TRIGGER"] = "1"
    streamed = run("streamed", [*WORK, "stream", str(home), name])
    del os.environ["RIVERMARK_FILES_PER_TRIGGER"]
    expected = rows_of_day(settings)
    for part in ("checkpoints", f"tables/{name}"):
        shutil.rmtree(Path(settings.lake_root) / part)
    drained = run("drained", [*WORK, "stream", str(home), name])
    same(expected, rows_of_day(settings), "the day drained at once")

    again = run("reprocess", [*WORK, "reprocess", str(home), name, DAY.isoformat()])
    figures["reprocess_times_cheaper_than_streamed"] = round(streamed.cpu / again.cpu, 2)
    figures["reprocess_times_cheaper_than_drained"] = round(drained.cpu / again.cpu, 2)
    same(expected, rows_of_day(settings), "reprocess")
    run("duckdb", [sys.executable, "-m", "bench.backfill", "--duckdb", str(home)])
    same(expected, duckdb_rows(home), "DuckDB")
    return figures | {"backfill_rows": len(expected)}


def same(expected: list[tuple[Any, ...]], rows: list[tuple[Any, ...]], way: str) -> None:
    """End with an error unless the rows are the same."""
    if not expected or expected != rows:
        raise SystemExit(f"{way} gave {len(rows)} rows, streaming gave {len(expected)}")


def main() -> None:
    """Measure and report."""
    parser = options_of(__doc__)
    parser.add_argument("--day", type=int, default=1_000_000, help="events of the day")
    parser.add_argument("--batches", type=int, default=96, help="commits by which the day comes")
    parser.add_argument("--short", action="store_true", help="a tenth of everything")
    parser.add_argument("--duckdb", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.duckdb:
        by_duckdb(options.duckdb)
        return
    tenth = 10 if options.short else 1
    figures: dict[str, Any] = {"load_before": load()}
    with tempfile.TemporaryDirectory() as name:
        figures |= measure(Path(name), options.day // tenth, max(2, options.batches // tenth))
    report("backfill", figures, options.out)


if __name__ == "__main__":
    main()
