"""The measured events: rides, fares and readings, the same for the same size and seed.

A size of N gives N ride events (START and END), about N/2 fares and N readings. They are as dense
in event time at every size, so a larger one lasts longer and holds as many open rides at a time:
state that grows with N is a defect. What holds by construction:

- an event arrives 0 to 60 s after its time, so a watermark delay of 60 s drops nothing;
- money is in quarters and temperature in 1/64, so sums of doubles are exact in any order;
- 1 % of the rides have no END, 0.5 % no START, 1 % no fare, 1 % of the fares no ride; 2 % last more
  than two hours; 2 % lie outside the city;
- each stream ends with a row of id -1, a day later (rides: a START and an END), which moves the
  watermark past all real windows; outputs leave it out.

Layouts below DATA, all of the same rows:

- parquet/STREAM/part-00000.parquet ...: 100,000 rows a file, in the order of arrival;
- split/STREAM/p0.parquet, p1.parquet: dealt to two files, as two partitions of a log hold them.
  Flink's bounded file source reads files in no order of time, and would drop most rows as late;
- json: JSON lines, where they are asked for (feed.py);
- lake/tables/bench/STREAM: a Delta table whose files are the Parquet files above (hard links), one
  commit a file, as a stream leaves them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction

from bench.peers.workloads import BEGIN, DAY, HOUR, MINUTE, SCHEMAS

EVENTS_A_DAY: Final = 1_000_000
ROWS_A_FILE: Final = 100_000
DRIVERS: Final = 10_000
SENSORS: Final = 200
Columns = dict[str, Any]


def prepare(folder: Path, size: int, seed: int = 7) -> dict[str, int]:
    """Write the events of that size unless they exist; returns the rows of each stream.

    Nothing appears under its name before it is whole, and nothing that is there is removed: another
    bench may be reading it. The folder's name should carry `generation()`.
    """
    return write_once(folder, lambda made: write_layouts(made, size, seed))


def write_once(folder: Path, write: Callable[[Path], dict[str, int]]) -> dict[str, int]:
    """Write a folder whole unless it exists; returns the rows of each stream that `write` did."""
    note = folder / "rows.json"
    if not note.exists():
        with making(folder) as made:
            (made / note.name).write_text(json.dumps(write(made)) + "\n")
    rows: dict[str, int] = json.loads(note.read_text())
    return rows


def generation() -> str:
    """Changes whenever what writes the events does, so that older ones are never taken."""
    modules = (Path(__file__), Path(__file__).with_name("feed.py"))
    return hashlib.sha256(b"".join(each.read_bytes() for each in modules)).hexdigest()[:8]


@contextmanager
def making(folder: Path) -> Iterator[Path]:
    """A folder beside the wanted one, which gets its name when it is whole."""
    made = folder.with_name(f".{folder.name}-{os.getpid()}")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    try:
        yield made
        with suppress(OSError):
            # Another bench may have been quicker; its events are the same.
            made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def write_layouts(folder: Path, size: int, seed: int) -> dict[str, int]:
    """All these layouts; returns the rows of each stream."""
    rows = {}
    for name, columns in build(size, seed).items():
        table = typed(name, columns)
        rows[name] = table.num_rows
        write_parts(folder / "parquet" / name, table)
        last = 2 if name == "rides" else 1
        deal(folder / "split" / name, table, last, np.arange(table.num_rows - last))
        lay_log(folder, name)
    return rows


def end_of(size: int) -> int:
    """A moment (ms) after every real result of that size, and before those of the last rows."""
    return BEGIN + DAY * size // EVENTS_A_DAY + 6 * HOUR


def build(size: int, seed: int) -> dict[str, Columns]:
    """The streams as columns, in the order of arrival."""
    draw = np.random.Generator(np.random.PCG64(seed))
    span = DAY * size // EVENTS_A_DAY
    rides, fares = build_rides(draw, size // 2, span)
    at = BEGIN + np.sort(draw.integers(0, span, size))
    sensor = draw.integers(0, SENSORS, size)
    degrees = np.round((65 + (sensor % 20) + draw.normal(0, 5, size)) * 64) / 64
    readings = {"sensor_id": sensor, "event_ms": at, "temperature": degrees}
    return {
        "rides": arrived(draw, rides, "ride_id", last=2),
        "fares": arrived(draw, fares, "ride_id"),
        "readings": arrived(draw, readings, "sensor_id"),
    }


def build_rides(draw: np.random.Generator, count: int, span: int) -> tuple[Columns, Columns]:
    """START and END of each ride, and its fare."""
    start = BEGIN + np.sort(draw.integers(0, span, count))
    ride = np.arange(1, count + 1)
    driver = draw.integers(1, DRIVERS + 1, count)
    lasts = (draw.gamma(2.0, 8.0, count) * MINUTE).astype(np.int64) + MINUTE
    long = draw.random(count) < 0.02
    lasts[~long] = np.minimum(lasts[~long], 2 * HOUR - 100_000)
    lasts[long] = 2 * HOUR + 1 + draw.integers(0, HOUR, int(long.sum()))
    lon = np.round(-74.0 + draw.normal(0, 0.05, count), 6)
    lat = np.round(40.75 + draw.normal(0, 0.05, count), 6)
    lat[draw.random(count) < 0.02] += 3.0
    course = {
        "start_lon": lon,
        "start_lat": lat,
        "end_lon": np.round(lon + draw.normal(0, 0.02, count), 6),
        "end_lat": np.round(lat + draw.normal(0, 0.02, count), 6),
        "passenger_count": draw.integers(1, 7, count).astype(np.int32),
        "taxi_id": driver + 2_000_000,
        "driver_id": driver,
    }
    chance = draw.random((4, count))

    def events(kept: Any, is_start: bool, at: Any) -> Columns:
        marks = {"ride_id": ride, "is_start": np.full(count, is_start), "event_ms": at}
        return {name: column[kept] for name, column in {**marks, **course}.items()}

    starts = events(chance[0] >= 0.005, True, start)
    ends = events(chance[1] >= 0.01, False, start + lasts)
    rides = {name: np.concatenate([starts[name], ends[name]]) for name in starts}

    card = draw.random(count) < 0.6
    tip = draw.integers(0, 60, count) * 0.25 * card
    tolls = np.where(draw.random(count) < 0.1, 6.25, 0.0)
    fare = {
        "ride_id": np.where(chance[3] < 0.01, ride + 10_000_000_000, ride),
        "taxi_id": driver + 2_000_000,
        "driver_id": driver,
        "event_ms": start,
        "payment_type": np.where(card, "CARD", "CASH"),
        "tip": tip,
        "tolls": tolls,
        "total_fare": draw.integers(12, 400, count) * 0.25 + tip + tolls,
    }
    return rides, {name: column[chance[2] >= 0.01] for name, column in fare.items()}


def arrived(
    draw: np.random.Generator,
    columns: Columns,
    key: str,
    *,
    last: int = 1,
    latest: int = MINUTE,
    end: int | None = None,
) -> Columns:
    """In the order of arrival, up to `latest` ms after their time, with the closing rows behind.

    They are `last` rows of key -1 at `end`, else a day after the newest.
    """
    at = columns["event_ms"]
    order = np.argsort(at + draw.integers(0, latest + 1, len(at)), kind="stable")
    columns = {name: column[order] for name, column in columns.items()}
    closing = {name: column[-last:].copy() for name, column in columns.items()}
    closing[key][:] = -1
    closing["event_ms"][:] = end or int(at.max()) + DAY
    if "is_start" in closing:
        closing["is_start"][:] = [True, False]
    return {name: np.concatenate([columns[name], closing[name]]) for name in columns}


def typed(name: str, columns: Columns) -> pa.Table:
    """As an Arrow table, with the event time also as a timestamp."""
    table = pa.table({column: columns[column] for column, _ in SCHEMAS[name]})
    instant = pc.cast(table["event_ms"], pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
    return table.append_column("event_time", instant)


def write_parts(folder: Path, table: pa.Table) -> None:
    """One file after the other; names and modification times in the order of arrival."""
    folder.mkdir(parents=True)
    began = time.time() - 1_000_000
    for number, first in enumerate(range(0, table.num_rows, ROWS_A_FILE)):
        file = folder / f"part-{number:05d}.parquet"
        pq.write_table(table.slice(first, ROWS_A_FILE), file, compression="snappy")
        os.utime(file, (began + number, began + number))


def deal(folder: Path, table: pa.Table, last: int, dealt_by: Any) -> None:
    """To two files by even and odd numbers of `dealt_by`, one for each row but the closing ones.

    Both get the closing rows, so that both watermarks pass the end.
    """
    folder.mkdir(parents=True)
    body = table.num_rows - last
    for part in (0, 1):
        body_rows = np.flatnonzero(dealt_by % 2 == part)
        places = np.concatenate([body_rows, np.arange(body, table.num_rows)])
        pq.write_table(table.take(places), folder / f"p{part}.parquet", compression="snappy")


def lay_log(folder: Path, name: str) -> None:
    """A Delta log beside the same Parquet files: one commit a file, with its statistics."""
    place = folder / "lake" / "tables" / "bench" / name
    place.mkdir(parents=True)
    files = sorted((folder / "parquet" / name).glob("*.parquet"))
    schema = Schema.from_arrow(pq.read_schema(files[0]))
    table = DeltaTable.create(str(place), schema=schema, name=f"bench.{name}")
    for file in files:
        os.link(file, place / file.name)
        table.create_write_transaction([added(file)], "append", schema)


def added(file: Path) -> AddAction:
    """A file's entry in the log, with the bounds of its times."""
    times = pq.read_table(file, columns=["event_time"])["event_time"]
    bounds = {
        bound: {"event_time": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
        for bound, at in zip(
            ("minValues", "maxValues"), pc.min_max(times).as_py().values(), strict=True
        )
    }
    stats = {"numRecords": len(times), **bounds, "nullCount": {"event_time": 0}}
    status = file.stat()
    modified = int(status.st_mtime * 1000)
    return AddAction(file.name, status.st_size, {}, modified, True, json.dumps(stats))
