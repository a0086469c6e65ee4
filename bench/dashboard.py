"""The dashboard of a year: every claim asked, every day judged, the page drawn. No engine.

    python -m bench dashboard [--days N] [--rows ROWS] [--short] [--keep FOLDER] [--out FILE]

Two ingests and their join with so many rows a day each, one in fifty of them late, a file a day and
table; a month of batches in `ops/stream_progress`; reprocessings on record. The page is drawn by a
cold process, twice; CPU seconds and peak memory are its own.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from assets.taxi.cleansing import CLEAN_FARES, CLEAN_RIDES
from assets.taxi.enrichment import RIDES_WITH_FARES
from assets.taxi.ingest import FARE_EVENTS, FIRST_DAY, RIDE_EVENTS
from bench.cold_start import cost_of, told
from bench.figures import write_figures
from rivermark.admission.batch import INGEST_FILES
from rivermark.lake.create import create_table
from rivermark.lake.note import noted
from rivermark.lake.table import Table
from rivermark.pages.refresh import refresh
from rivermark.reprocessing.record import Record, new_id, remember
from rivermark.runtime.progress import ARROW, STREAM_PROGRESS
from rivermark.settings import Settings
from rivermark.stream import Ingest
from rivermark.topology import Topology

TOPOLOGY: Final = Topology([RIDE_EVENTS, FARE_EVENTS, CLEAN_RIDES, CLEAN_FARES, RIDES_WITH_FARES])
LATE_EVERY: Final = 50
BATCH_SECONDS: Final = 20
PROGRESS_DAYS: Final = 30


def land_year(settings: Settings, days: int, rows: int) -> None:
    """Write the tables as the streams leave them."""
    for ingest in (RIDE_EVENTS, FARE_EVENTS):
        _land(settings, ingest, days, rows)
    for stream in (CLEAN_RIDES, CLEAN_FARES, RIDES_WITH_FARES):
        for number, table in enumerate(stream.tables):
            create_table(settings.lake(), table)
            for day in range(days if number == 0 else 0):
                _append(settings, table, _columns(table, day, range(rows), rows))
    _progress(settings, days)
    _reprocessings(settings, days)


def _land(settings: Settings, ingest: Ingest, days: int, rows: int) -> None:
    for table in ingest.tables:
        create_table(settings.lake(), table)
    outcomes = []
    for day in range(days + 1):
        # The row after the last day closes it.
        mine = range(rows) if day < days else range(1)
        late = [n for n in mine if n % LATE_EVERY == 7]
        admitted = [n for n in mine if n % LATE_EVERY != 7]
        moment = datetime.combine(FIRST_DAY + timedelta(days=day + 1), datetime.min.time(), UTC)
        clock = {"clock": {"newest": (moment + timedelta(hours=1)).isoformat()}, "batch": day}
        _append(settings, ingest.raw, _columns(ingest.raw, day, mine, rows), **clock)
        _append(settings, ingest.admitted, _columns(ingest.admitted, day, admitted, rows))
        _append(settings, ingest.late, _columns(ingest.late, day, late, rows))
        outcomes.append(
            {
                "stream": ingest.name,
                "file": f"{day:04}.json",
                "path": f"{day:04}.json",
                "status": "read",
                "modified_at": moment,
                "ingest_batch": day,
                "rows": len(mine),
                "admitted": len(admitted),
                "late": len(late),
                "quarantined": 0,
            }
        )
    create_table(settings.lake(), INGEST_FILES)
    path = settings.lake().path(INGEST_FILES)
    schema = DeltaTable(path).to_pyarrow_dataset().schema
    write_deltalake(path, pa.Table.from_pylist(outcomes, schema), mode="append")


def _columns(table: Table, day: int, numbers: Any, rows: int) -> dict[str, list[Any]]:
    """The columns that days, keys, places and money are told by; the rest stays empty."""
    start = datetime.combine(FIRST_DAY + timedelta(days=day), datetime.min.time(), UTC)
    step = timedelta(days=1) / rows
    found: dict[str, list[Any]] = {
        "_file": [f"{day:04}.json"] * len(numbers),
        "_row": list(numbers),
        "_ingest_batch": [day] * len(numbers),
        "ride_id": [day * rows + n for n in numbers],
        "event_time": [start + n * step for n in numbers],
        "is_start": [True] * len(numbers),
        "total_fare": [Decimal(n % 40 + 5) for n in numbers],
        "_late_by_ms": [(n * 7919) % 3_600_000 for n in numbers],
    }
    return {name: values for name, values in found.items() if name in table.schema.fieldNames()}


def _append(
    settings: Settings, table: Table, columns: Mapping[str, list[Any]], **told: object
) -> None:
    path = settings.lake().path(table)
    schema = DeltaTable(path).to_pyarrow_dataset().schema
    count = len(next(iter(columns.values())))
    arrays = [
        pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(count, f.type)
        for f in schema
    ]
    rows = pa.Table.from_arrays(arrays, schema=schema)
    write_deltalake(path, rows, mode="append", commit_properties=noted(told))


def _progress(settings: Settings, days: int) -> None:
    create_table(settings.lake(), STREAM_PROGRESS)
    end = datetime.combine(FIRST_DAY + timedelta(days=days), datetime.min.time(), UTC)
    for day in range(PROGRESS_DAYS):
        rows = [
            {
                "stream": stream.name,
                "generation": 0,
                "run_id": f"run {day // 7}",
                "batch_id": day * 86_400 // BATCH_SECONDS + n,
                "started_at": end - timedelta(days=day, seconds=n * BATCH_SECONDS),
                "duration_ms": 700,
                "rows_in": 20,
                "rows_out": 20,
                "dropped_by_watermark": 0,
                "duplicates": 0,
                "counters": [("seen", 20)],
                "gauges": [],
            }
            for stream in TOPOLOGY.streams
            for n in range(86_400 // BATCH_SECONDS)
        ]
        path = settings.lake().path(STREAM_PROGRESS)
        write_deltalake(path, pa.Table.from_pylist(rows, ARROW), mode="append")


def _reprocessings(settings: Settings, days: int) -> None:
    at = datetime.combine(FIRST_DAY + timedelta(days=days), datetime.min.time(), UTC)
    table = RIDES_WITH_FARES.tables[0].name
    records = [
        Record(
            id=new_id(at - timedelta(days=n)),
            at=at - timedelta(days=n),
            kind="replaced",
            stream=RIDES_WITH_FARES.name,
            table=table,
            first_day=day,
            last_day=day,
            version_before=n,
            version_after=n + 1,
            added=n,
            run_id="run",
        )
        for n in range(min(days, 200))
        for day in [date.fromordinal((at - timedelta(days=n)).toordinal())]
    ]
    remember(settings.lake(), records)


def draw(home: Path, days: int) -> None:
    """Draw the page as the hourly run does."""
    now = datetime.combine(FIRST_DAY + timedelta(days=days), datetime.min.time(), UTC)
    drawn = refresh(Settings(home=home), TOPOLOGY, now)
    judged = sum(len(s.days) + len(s.derived_days) for s in drawn.facts.streams)
    sys.stdout.write(f"{drawn.path.stat().st_size} {len(drawn.asked)} {judged}\n")


def measure(folder: Path, days: int, rows: int) -> dict[str, Any]:
    """Land a year, and draw its page twice: the second time with looks of the first."""
    home, log = folder / "home", folder / "log"
    if not home.exists():
        land_year(Settings(home=home), days, rows)
    command = [sys.executable, "-m", "bench.dashboard", "--draw", str(home), "--days", str(days)]
    figures: dict[str, Any] = {"dashboard_days": days, "dashboard_rows": 2 * days * rows}
    for name in ("dashboard_first", "dashboard_again"):
        figures |= told(name, cost_of(command, log))
    size, asked, judged = log.read_text().splitlines()[-1].split()
    return figures | {"page_bytes": int(size), "claims": int(asked), "days_judged": int(judged)}


def main() -> None:
    """Measure, print, and keep the figures where it was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--rows", type=int, default=1440, help="rows a day of each ingest")
    parser.add_argument("--short", action="store_true", help="a month")
    parser.add_argument("--keep", type=Path, help="write the year here, or use the one that is")
    parser.add_argument("--draw", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.draw:
        draw(options.draw, options.days)
        return
    figures: dict[str, Any] = {"load_before": round(os.getloadavg()[0], 1)}
    days = 30 if options.short else options.days
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        figures |= measure(folder, days, options.rows)
    for key, value in figures.items():
        print(f"{key:40} {value}")
    if options.out:
        write_figures(options.out, "dashboard", figures)


if __name__ == "__main__":
    main()
