"""Whether an output is, row for row, the reference's; a run whose output differs has no time."""

from __future__ import annotations

from pathlib import Path

import duckdb
from deltalake import DeltaTable

from bench.peers.events import end_of
from bench.peers.workloads import WORKLOADS


def difference(workload: str, size: int, output: Path, reference: Path) -> str:
    """What differs, in words; empty when nothing does.

    Rows are compared as they are, doubles included, each as often as it occurs (EXCEPT ALL both
    ways). What lies behind the data's end comes from the closing rows and counts on neither side.
    """
    db = duckdb.connect(config={"threads": 2})
    sides = {}
    for side, folder in (("actual", output), ("expected", reference)):
        files = result_files(folder, workload)
        if not files:
            return f"no output in {folder.name}"
        asks = WORKLOADS[workload]
        columns = ", ".join(f"{name}::{sql_type(kind)} AS {name}" for name, kind in asks.columns)
        # Pathway writes each row with its sign; one that is taken back would be one too many.
        read = "read_json" if files[0].endswith(".jsonl") else "read_parquet"
        db.execute(f"CREATE VIEW {side}_files AS FROM {read}({files!r})")
        rows = f"{side}_files"
        if not has_column(db, rows, asks.time):
            # An admitted table has the time as a timestamp.
            rows = f"(SELECT *, epoch_ms(event_time) AS event_ms FROM {rows})"
        db.execute(
            f"CREATE VIEW {side} AS SELECT {columns} FROM {rows} "
            f"WHERE {asks.time} <= {end_of(size)}"
        )
        sides[side] = count(db, side)
    missing = count(db, "(FROM expected EXCEPT ALL FROM actual)")
    extra = count(db, "(FROM actual EXCEPT ALL FROM expected)")
    if not sides["expected"]:
        return "the reference has no rows"
    if missing or extra:
        return f"{missing:,} of {sides['expected']:,} rows are missing, {extra:,} are too many"
    return ""


def has_column(db: duckdb.DuckDBPyConnection, relation: str, name: str) -> bool:
    """Whether a relation has a column of that name."""
    return name in [row[0] for row in db.execute(f"DESCRIBE {relation}").fetchall()]


def sql_type(kind: str) -> str:
    """A column's type in DuckDB."""
    return "VARCHAR" if kind == "STRING" else kind


def count(db: duckdb.DuckDBPyConnection, relation: str) -> int:
    """Rows of a relation."""
    row = db.execute(f"SELECT count(*) FROM {relation}").fetchone()
    return int(row[0]) if row else 0


def result_files(folder: Path, workload: str) -> list[str]:
    """The Parquet files of an output: those of a Delta table's newest version, or all there are."""
    table = folder / "lake" / "tables" / "bench" / workload
    for place in (table, folder):
        if (place / "_delta_log").is_dir():
            return list(DeltaTable(str(place)).file_uris())
    # Flink gives its files no ending; what it did not commit begins with a dot.
    return sorted(str(file) for file in folder.glob("part-*") if file.stat().st_size)
