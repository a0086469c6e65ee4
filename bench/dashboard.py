"""The dashboard of a year: every check and every day evaluated, the page drawn, without Spark.

    python -m bench dashboard [--days N] [--rows ROWS] [--files FILES] [--short] [--keep FOLDER]
                              [--out FILE]

Two ingests and their join with so many rows a day each, one in fifty of them late, a file a day and
table, or with `--files` so many a day of the fares; a month of batches in `ops/stream_progress`;
reprocessings on record. The page is drawn by a cold process before and after the upkeep that joins
small files; CPU seconds and peak memory are its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake

from assets.taxi.cleansing import CLEAN_FARES, CLEAN_RIDES
from assets.taxi.enrichment import RIDES_WITH_FARES
from assets.taxi.ingest import FARE_EVENTS, FIRST_DAY, RIDE_EVENTS
from bench.figures import load, options_of, report
from bench.process_tree import run_measured
from rivermark.backfill.maintenance import upkeep
from rivermark.backfill.registry import Record, register
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.append.data_file import write_data_file
from rivermark.lake.archive import new_id
from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import rows_of
from rivermark.model.stream import Ingest
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.monitor.dashboard.refresh import refresh
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings

TOPOLOGY: Final = Topology([RIDE_EVENTS, FARE_EVENTS, CLEAN_RIDES, CLEAN_FARES, RIDES_WITH_FARES])
LATE_EVERY: Final = 50
BATCH_SECONDS: Final = 60
PROGRESS_DAYS: Final = 30


class Filled:
    """A table that gets a day's rows a commit; what stays the same each day is made once."""

    def __init__(self, settings: Settings, table: Table, numbers: range | list[int]) -> None:
        """Make the table, and its columns of days, keys, positions and money."""
        create_table(settings.lake(), table)
        self._table = DeltaTable(settings.lake().path(table))
        self._schema = pa.schema(self._table.schema().to_arrow())
        self._numbers = pa.array(numbers, pa.int64())
        fixed: dict[str, list[Any]] = {
            "_row": list(numbers),
            "is_start": [True] * len(numbers),
            "total_fare": [Decimal(n % 40 + 5) for n in numbers],
            "_late_by_ms": [(n * 7919) % 3_600_000 for n in numbers],
        }
        self._fixed = {
            f.name: pa.array(fixed[f.name], f.type)
            if f.name in fixed
            else pa.nulls(len(numbers), f.type)
            for f in self._schema
        }

    def rows_of(self, day: int, rows: int) -> pa.Table:
        """A day's rows, evenly spread over so many; the rest of their columns stays empty."""
        start = datetime.combine(FIRST_DAY + timedelta(days=day), datetime.min.time(), UTC)
        step = 86_400_000_000 // rows
        micros = pc.add(pc.multiply(self._numbers, step), int(start.timestamp()) * 1_000_000)
        count = len(self._numbers)
        changing = {
            "_file": pa.array([f"{day:04}.json"] * count),
            "_ingest_batch": pa.array([day] * count),
            "ride_id": pc.add(self._numbers, day * rows),
            "event_time": pc.cast(micros, pa.timestamp("us", "UTC")),
        }
        arrays = [
            changing[f.name].cast(f.type) if f.name in changing else self._fixed[f.name]
            for f in self._schema
        ]
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def add(self, day: int, rows: int, most: int | None = None, **metadata: object) -> None:
        """Commit the day's rows, or the first ones of them."""
        self.commit(self.rows_of(day, rows).slice(0, most), **metadata)

    def commit(self, rows: pa.Table, **metadata: object) -> None:
        """Commit rows."""
        properties = commit_properties(metadata)
        write_deltalake(self._table, rows, mode="append", commit_properties=properties)


def land_year(settings: Settings, days: int, rows: int, files: int = 1) -> None:
    """Write the tables as the streams leave them; the fares in so many files a day."""
    _land(settings, RIDE_EVENTS, days, rows)
    if files > 1:
        land_files(settings, FARE_EVENTS, days, rows, files)
    else:
        _land(settings, FARE_EVENTS, days, rows)
    for stream in (CLEAN_RIDES, CLEAN_FARES, RIDES_WITH_FARES):
        first, *others = stream.tables
        filled = Filled(settings, first, range(rows))
        for day in range(days):
            filled.add(day, rows)
        for table in others:
            create_table(settings.lake(), table)
    _progress(settings, days)
    _reprocessings(settings, days)


def _land(settings: Settings, ingest: Ingest, days: int, rows: int) -> None:
    late = [n for n in range(rows) if n % LATE_EVERY == 7]
    on_time = [n for n in range(rows) if n % LATE_EVERY != 7]
    raw = Filled(settings, ingest.raw, range(rows))
    admitted = Filled(settings, ingest.admitted, on_time)
    behind = Filled(settings, ingest.late, late)
    create_table(settings.lake(), ingest.quarantine)
    outcomes = []
    for day in range(days + 1):
        # One row after the last day closes it.
        most = None if day < days else 1
        moment = datetime.combine(FIRST_DAY + timedelta(days=day + 1), datetime.min.time(), UTC)
        clock = {"clock": {"newest": (moment + timedelta(hours=1)).isoformat()}, "batch": day}
        raw.add(day, rows, most, **clock)
        admitted.add(day, rows, most)
        if most is None:
            behind.add(day, rows)
        outcomes.append(
            {
                "stream": ingest.name,
                "file": f"{day:04}.json",
                "path": f"{day:04}.json",
                "status": "read",
                "modified_at": moment,
                "ingest_batch": day,
                "rows": most or rows,
                "admitted": most or len(on_time),
                "late": 0 if most else len(late),
                "quarantined": 0,
            }
        )
    create_table(settings.lake(), INGEST_FILES)
    path = settings.lake().path(INGEST_FILES)
    schema = DeltaTable(path).to_pyarrow_dataset().schema
    write_deltalake(path, pa.Table.from_pylist(outcomes, schema), mode="append")


def of_batches(rows: pa.Table, first: int, size: int) -> pa.Table:
    """The rows as those of batches of so many, each of a file."""
    batches = [first + n // size for n in range(len(rows))]
    for name, values in (
        ("_ingest_batch", batches),
        ("_file", [f"{batch:07}.json" for batch in batches]),
    ):
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(place)
        rows = rows.set_column(place, field, pa.array(values).cast(field.type))
    return rows


def land_files(settings: Settings, ingest: Ingest, days: int, rows: int, files: int) -> None:
    """As a live ingest leaves them: a file of the admitted table a batch, and upkeep elsewhere."""
    raw = Filled(settings, ingest.raw, range(rows))
    admitted = Filled(settings, ingest.admitted, range(rows))
    behind = Filled(settings, ingest.late, [7, rows // 2])
    create_table(settings.lake(), ingest.quarantine)
    path = settings.lake().path(ingest.admitted)
    outcomes = []
    for day in range(days):
        moment = datetime.combine(FIRST_DAY + timedelta(days=day + 1), datetime.min.time(), UTC)
        clock = {"clock": {"newest": moment.isoformat()}, "batch": day * files}
        size, adds = -(-rows // files), []
        raw.commit(of_batches(raw.rows_of(day, rows), day * files, size), **clock)
        behind.add(day, rows)
        of_day = of_batches(admitted.rows_of(day, rows), day * files, size)
        for n in range(files):
            part, batch = of_day.slice(n * size, size), day * files + n
            adds.append(write_data_file(path, part, [(name,) for name in part.schema.names[:12]]))
            outcomes.append(
                {
                    "stream": ingest.name,
                    "file": f"{batch:07}.json",
                    "path": f"{batch:07}.json",
                    "status": "read",
                    "modified_at": moment,
                    "ingest_batch": batch,
                    "rows": len(part),
                    "admitted": len(part),
                    "late": 0,
                    "quarantined": 0,
                }
            )
        entry = Path(path, "_delta_log", f"{day + 1:020d}.json")
        info = {"commitInfo": {"timestamp": int(moment.timestamp() * 1000), "operation": "WRITE"}}
        entry.write_text("\n".join(json.dumps(each) for each in (info, *adds)))
        if day % 50 == 49:
            DeltaTable(path).create_checkpoint()
    create_table(settings.lake(), INGEST_FILES)
    schema = pa.schema(DeltaTable(settings.lake().path(INGEST_FILES)).schema().to_arrow())
    for start in range(0, len(outcomes), len(outcomes) // 50):
        some = pa.Table.from_pylist(outcomes[start : start + len(outcomes) // 50], schema)
        write_deltalake(settings.lake().path(INGEST_FILES), some, mode="append")


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
        write_deltalake(path, rows_of(STREAM_PROGRESS, rows), mode="append")


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
    register(settings.lake(), records)


def draw(home: Path, days: int) -> None:
    """Draw the page as the hourly run does."""
    now = datetime.combine(FIRST_DAY + timedelta(days=days), datetime.min.time(), UTC)
    drawn = refresh(Settings(home=home), TOPOLOGY, now)
    figures = {
        "page_bytes": drawn.path.stat().st_size,
        "claims": len(drawn.evaluations),
        "days_judged": sum(len(s.days) + len(s.derived_days) for s in drawn.facts.streams),
    }
    print(json.dumps(figures))


def measure(folder: Path, days: int, rows: int, files: int) -> dict[str, Any]:
    """Land a year, and draw its page: as the streams left it, and after the nightly upkeep."""
    home, log = folder / "home", folder / "log"
    if not home.exists():
        land_year(Settings(home=home), days, rows, files)
    command = [sys.executable, "-m", "bench.dashboard", "--draw", str(home), "--days", str(days)]
    figures: dict[str, Any] = {"dashboard_days": days, "dashboard_rows": 2 * days * rows}
    figures |= run_measured(command, log)[0].figures("dashboard_as_streams_left_it")
    if files > 1:
        return figures | {"dashboard_files": days * files}
    upkeep(Settings(home=home), TOPOLOGY, run_id="bench")
    cost, (page,) = run_measured(command, log)
    return figures | cost.figures("dashboard_after_upkeep") | page


def main() -> None:
    """Measure and report."""
    parser = options_of(__doc__)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--rows", type=int, default=1440, help="rows a day of each ingest")
    parser.add_argument("--files", type=int, default=1, help="files a day of the fares")
    parser.add_argument("--short", action="store_true", help="a month")
    parser.add_argument("--keep", type=Path, help="write the year here, or use the one that is")
    parser.add_argument("--draw", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.draw:
        draw(options.draw, options.days)
        return
    figures: dict[str, Any] = {"load_before": load()}
    days = 30 if options.short else options.days
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        figures |= measure(folder, days, options.rows, options.files)
    report("dashboard", figures, options.out)


if __name__ == "__main__":
    main()
