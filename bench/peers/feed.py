"""JSON lines: the rides, and fares as a feed lands them, some broken and some far too late.

The fares of size N are about N lines, a million a day of event time. What holds of them by
construction, so that every engine has to come to the same winners:

- one line in a hundred is broken in a way that leaves no doubt: cut short, no JSON, a word for the
  tip, no driver, a word for the time;
- one line in a hundred belongs to the hours before the first one and comes after all others, in a
  file of its own, when every engine has closed those hours; their tips would win them;
- a line in time is up to 60 s late, and the last of them, of ride -1, is a day later.

Layouts below DATA/json, files of up to 100,000 lines in the order of arrival:

- rides/part-00000.json ...: the rides, all of them well-formed;
- feed/parts/part-00000.json ...: the fares;
- feed/dealt: the fares in two files, each with the last line in time and the late ones behind it,
  for Flink (events.py).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.peers.events import (
    EVENTS_A_DAY,
    ROWS_A_FILE,
    arrived,
    build_rides,
    typed,
    write_once,
)
from bench.peers.workloads import BEGIN, DAY, HOUR

ONE_IN: Final = 100
BEFORE: Final = 6 * HOUR
"""How long before the first hour the late lines begin, in milliseconds."""


def prepare_lines(folder: Path, name: str, size: int, seed: int = 7) -> dict[str, int]:
    """Write a stream's JSON lines below the folder of its events, unless they exist.

    Returns how many there are.
    """
    lines = folder / "json" / name
    if name == "feed":
        return write_once(lines, lambda made: write_feed(made, size, seed))
    return write_once(lines, lambda made: write_rides(made, folder / "parquet" / "rides"))


def write_rides(folder: Path, rides: Path) -> dict[str, int]:
    """Write the rides of Parquet files as JSON lines; returns how many there are."""
    files = sorted(rides.iterdir())
    write_lines(folder, (json_lines(pq.read_table(file)) for file in files))
    return {"rides": sum(pq.read_metadata(file).num_rows for file in files)}


def write_feed(folder: Path, size: int, seed: int) -> dict[str, int]:
    """Write both layouts of the fares; returns how many lines there are."""
    draw = np.random.Generator(np.random.PCG64(seed))
    _, fares = build_rides(draw, size, DAY * size // EVENTS_A_DAY)
    *in_time, last = json_lines(typed("fares", arrived(draw, fares, "ride_id")))
    for n in range(ONE_IN // 2, len(in_time), ONE_IN):
        in_time[n] = broken(in_time[n], n // ONE_IN)
    picked = {name: column[::ONE_IN].copy() for name, column in fares.items()}
    picked["ride_id"] += 20_000_000_000
    picked["event_ms"] = BEGIN - BEFORE + np.arange(len(picked["event_ms"])) * 1_000 % BEFORE
    late = json_lines(typed("fares", picked))
    # Spark tells late rows by the watermark of two batches before, so there are some at any size.
    most = min(ROWS_A_FILE, len(in_time) // 4 + 1)
    write_lines(folder / "parts", [*in_parts([*in_time, last], most), late])
    dealt = [[*in_time[part::2], last, *late[part::2]] for part in (0, 1)]
    write_lines(folder / "dealt", dealt)
    return {"feed": len(in_time) + 1 + len(late)}


def broken(line: str, kind: int) -> str:
    """A line that no engine can take for a fare, by turns in one of five ways."""
    match kind % 5:
        case 0:
            return line[: len(line) // 2]
        case 1:
            return "#### the feed begins again ####"
        case 2:
            return line.replace('"tip":', '"tip":"some","given":', 1)
        case 3:
            return line.replace('"driver_id":', '"driver":', 1)
        case _:
            return line.replace('"event_time":"', '"event_time":"about ', 1)


def json_lines(table: pa.Table) -> list[str]:
    """Rows as JSON lines, the time as text."""
    at = pc.strftime(table["event_time"].cast(pa.timestamp("ms", "UTC")), "%Y-%m-%dT%H:%M:%SZ")
    rows = table.drop_columns(["event_time", "event_ms"]).append_column("event_time", at)
    with duckdb.connect() as db:
        db.register("rows", rows)
        lines = db.sql("SELECT to_json(r)::VARCHAR AS line FROM rows r").to_arrow_table()
    texts: list[str] = lines["line"].to_pylist()
    return texts


def in_parts(lines: list[str], most: int) -> list[list[str]]:
    """The lines of each file, so many at most."""
    return [lines[first : first + most] for first in range(0, len(lines), most)]


def write_lines(folder: Path, files: Iterable[list[str]]) -> None:
    """One file after the other; names and modification times in the order of arrival."""
    folder.mkdir(parents=True, exist_ok=True)
    began = time.time() - 1_000_000
    for number, lines in enumerate(files):
        file = folder / f"part-{number:05d}.json"
        file.write_text("\n".join([*lines, ""]))
        os.utime(file, (began + number, began + number))
