"""The domains' rules as their streams run them, over what generated feeds landed, without a JVM.

Rows travel as Spark sends them: packed by bucket, run to the end, written for their tables.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from assets.fraud.streams import GUESSED_PASSWORDS, RAPID_PAYMENTS, TRIED_OUT_CARDS
from assets.readings.alerts.streams import (
    CORRECTED_COUNTS,
    RISING_TEMPERATURES,
    SMOKE_ALERTS,
    TEMPERATURE_JUMPS,
)
from assets.web.streams import SESSIONS
from rivermark.model.stream import Ingest, Stream, lateness_of
from rivermark.process.spark.build import ProcessBuild
from rivermark.process.spark.core import BucketRun, Core
from rivermark.process.spark.packing import Packer
from rivermark.process.spark.reading import BUCKET, ORDER, InputReader
from rivermark.process.spark.stateful import BucketProcessor
from rivermark.process.spark.writing import TAG
from simulator.feeds import drip_feeds
from simulator.fraud.commands import fraud_feeds
from simulator.fraud.world import FraudWorld
from simulator.readings.feeds import sensor_feeds
from simulator.readings.world import SensorWorld
from simulator.web.commands import web_feeds
from simulator.web.world import WebWorld
from tests.oracles import alerts
from tests.oracles.landed import accept
from tests.unit.process.spark.kept_bucket import KeptBucket

BEGINNING = datetime(2024, 3, 1, 15, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICRO = timedelta(microseconds=1)
BUCKETS = 8

Row = dict[str, Any]


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("landing")
    every = timedelta(seconds=30)
    length = timedelta(minutes=4)
    drip_feeds(root, sensor_feeds(SensorWorld(), BEGINNING, length, controls=True), every=every)
    feeds = web_feeds(WebWorld(users=30), BEGINNING, timedelta(hours=1))
    feeds += fraud_feeds(FraudWorld(accounts=30), BEGINNING, timedelta(hours=1))
    drip_feeds(root, feeds, every=timedelta(minutes=10))
    return root


def admitted(landing: Path, ingest: object) -> list[Row]:
    """What the door must admit, times in microseconds."""
    assert isinstance(ingest, Ingest)
    assert ingest.lateness is not None
    rows = accept(landing / ingest.source.name, ingest.lateness).admitted
    return [{**row, "event_time": (row["event_time"] - EPOCH) // MICRO} for row in rows]


def tuples(landing: Path, ingest: object, *fields: str) -> list[tuple[Any, ...]]:
    """Fields of admitted rows, times in milliseconds."""
    return [
        tuple(row[f] // 1_000 if f == "event_time" else row[f] for f in fields)
        for row in admitted(landing, ingest)
    ]


Packets = dict[int, list[pa.RecordBatch]]


def core_of(stream: Stream, *, by_python: bool = False) -> tuple[Core, list[InputReader]]:
    """What runs a stream's batches, and the readers of its inputs in the order of its reads."""
    build = stream.build
    assert isinstance(build, ProcessBuild)
    assert build._writer is not None
    readers = [
        build._reader(name, read.admitted.schema)
        for name, read in zip(build.inputs, stream.reads, strict=True)
        if isinstance(read, Ingest)
    ]
    if by_python:
        readers = [replace(each, bucketed=False) for each in readers]
    by_rank = tuple(sorted(readers, key=lambda each: each.rank))
    labels = tuple(range(BUCKETS))
    return Core(build.make, build.limits, by_rank, build._writer, labels=labels), readers


def packed(reader: InputReader, rows: list[Row], packets: Packets) -> None:
    """Put rows into the packets of their buckets."""
    for batch in Packer(reader, tuple(range(BUCKETS)))(iter([travelling(reader, rows)])):
        labels = batch.column("bucket").to_pylist()
        for label in set(labels):
            mine = [place for place, each in enumerate(labels) if each == label]
            packets[label].append(batch.take(pa.array(mine)))


def run(stream: Stream, landing: Path, *, by_python: bool = False) -> list[Row]:
    """The rows that a stream writes over whole tables, times in microseconds."""
    core, readers = core_of(stream, by_python=by_python)
    packets: Packets = defaultdict(list)
    for reader, read in zip(readers, stream.reads, strict=True):
        packed(reader, admitted(landing, read), packets)
    assert len(packets) > 1
    found: list[Row] = []
    for label, batches in packets.items():
        # Spark gives the key as a scalar of Arrow's.
        key = (pa.scalar(label, pa.int32()),)
        found += BucketRun(core)(key, pa.Table.from_batches(batches)).to_pylist()
    return found


def run_live(stream: Stream, landing: Path, batches: int) -> list[Row]:
    """The rows that a stream writes in so many batches and one without rows that ends them all.

    A batch's watermark is the newest time of earlier ones less the stream's lateness, of the input
    that is furthest behind. Times are in microseconds.
    """
    core, readers = core_of(stream)
    stories = [admitted(landing, read) for read in stream.reads]
    buckets: dict[int, KeptBucket] = defaultdict(KeptBucket)
    found: list[Any] = []
    watermark = 0
    for n in range(batches + 1):
        packets: Packets = defaultdict(list)
        newest = []
        for reader, story in zip(readers, stories, strict=True):
            batch = story[n * len(story) // batches : (n + 1) * len(story) // batches]
            if batch:
                packed(reader, batch, packets)
            seen = story[: (n + 1) * len(story) // batches]
            newest.append(max(row["event_time"] for row in seen) // 1_000)
        for label in sorted({*buckets, *packets}):
            bucket = buckets[label]
            bucket.watermark = watermark
            processor = BucketProcessor(core)
            processor.init(bucket)  # type: ignore[arg-type]
            if label in packets:
                table = pa.Table.from_batches(packets[label]).to_pylist()
                rows = [SimpleNamespace(**row) for row in table]
                found += processor.handleInputRows((label,), iter(rows), bucket)
            for at in sorted(each for each in bucket.timers if each <= watermark):
                bucket.timers.remove(at)
                found += processor.handleExpiredTimer((label,), bucket, at)
        lateness = lateness_of(stream) // timedelta(milliseconds=1)
        watermark = min(newest) - lateness if n < batches - 1 else min(newest) + 24 * 3_600_000
    names = core.writer.schema.names
    assert [label for label, bucket in buckets.items() if bucket.timers] == []
    return [dict(zip(names, row, strict=True)) for each in found for row in each.asDict()["rows"]]


def travelling(reader: InputReader, rows: list[Row]) -> pa.RecordBatch:
    """Rows in the form in which they cross over to Python: times as numbers."""
    columns: dict[str, pa.Array] = {}
    for each in reader.schema:
        if each.name == ORDER:
            values: list[Any] = [0] * len(rows)
        elif each.name == "event_time":
            values = [row["event_time"] // 1_000 for row in rows]
        else:
            values = [row[each.name] for row in rows]
        if pa.types.is_decimal(each.type):
            values = [Decimal(value).quantize(Decimal("0.0001")) for value in values]
            values = [value.quantize(Decimal(1).scaleb(-each.type.scale)) for value in values]
        columns[each.name] = pa.array(values, each.type)
    if reader.bucketed:
        keys = [str(row[str(reader.spec.key)]) for row in rows]
        buckets = [zlib.crc32(key.encode()) % BUCKETS for key in keys]
        columns[BUCKET] = pa.array(buckets, pa.int16())
    return pa.RecordBatch.from_pydict(columns)


def written(rows: list[Row], *columns: str, tag: str = "main") -> list[tuple[Any, ...]]:
    """Columns of the rows of a tag, in order: times in milliseconds, decimals as such."""
    return sorted(
        (tuple(back(row, c) for c in columns) for row in rows if row[TAG] == tag), key=repr
    )


def back(row: Row, column: str) -> Any:
    value = row[column]
    if column.endswith(("_time", "_start", "_end", "since")):
        return value // 1_000
    if column in ("temperature", "before", "threshold", "total", "amount"):
        return Decimal(value)
    return value


READING = ("sensor_id", "event_time", "temperature")


def test_keys_that_python_places_give_the_same_rows(landing: Path) -> None:
    rows = run(TEMPERATURE_JUMPS, landing, by_python=True)

    assert sorted(map(str, rows)) == sorted(map(str, run(TEMPERATURE_JUMPS, landing)))


@pytest.mark.parametrize(
    "stream",
    [TEMPERATURE_JUMPS, RISING_TEMPERATURES, SMOKE_ALERTS, SESSIONS, GUESSED_PASSWORDS,
     TRIED_OUT_CARDS, RAPID_PAYMENTS],
    ids=lambda stream: stream.name,
)  # fmt: skip
def test_a_live_run_in_batches_writes_what_a_run_over_tables_does(
    landing: Path, stream: Stream
) -> None:
    def comparable(rows: list[Row]) -> list[str]:
        return sorted(repr(sorted(row.items())) for row in rows)

    whole = comparable(run(stream, landing))
    assert whole

    assert comparable(run_live(stream, landing, 3)) == whole
    assert comparable(run_live(stream, landing, 17)) == whole


def test_a_live_run_corrects_its_counts_until_they_are_those_of_all_readings(
    landing: Path,
) -> None:
    rows = run_live(CORRECTED_COUNTS, landing, 240)

    latest: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    columns = ("sensor_id", "window_end", "revision", "readings", "total", "mark")
    for row in sorted(written(rows, *columns)):
        latest[row[:2]] = row[3:5]
    marks = {row["mark"] for row in rows}
    expected = alerts.counts(tuples(landing, CORRECTED_COUNTS.reads[0], *READING), 10_000)
    assert sorted((*key, *row) for key, row in latest.items()) == list(expected)
    assert marks == {"first", "update"}
    assert written(rows, "sensor_id", tag="readings_too_late") == []
