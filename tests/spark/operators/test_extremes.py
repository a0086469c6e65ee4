"""The extremes of each type through operators: a stream goes on, and each row comes through."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.operators import (
    EventWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    first_of_each,
    join_as_of,
    keep,
    per_window,
)
from tests.unit.sinks.test_extremes import EVERY, plain, rows

NOON: Final = datetime(2024, 3, 1, 12, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)
NAMES: Final = EVERY.schema.fieldNames()
VALUES: Final = NAMES[1:]
Build = Callable[[DataFrame, DataFrame], DataFrame]


def per(window: EventWindow) -> Build:
    """The rows of all windows, computed beside the least and the largest of each column."""

    def build(events: DataFrame, _: DataFrame) -> DataFrame:
        ends = {f"{end.__name__}_{v}": end(v) for v in VALUES for end in (F.min, F.max)}
        own = F.collect_list(F.struct(*NAMES))
        # By a key, which all rows share: Spark takes no sessions of a stream without one.
        windows = per_window(events, window, "time", "_file", rows=own, **ends)
        ends_too = F.array_size("rows") + F.size(F.array(*[F.hash(name) for name in ends]))
        return windows.where(ends_too > 0).select(F.inline("rows"))

    return build


def groups(events: DataFrame, _: DataFrame) -> DataFrame:
    """A group of each value."""
    counted = per_window(events, TumblingWindow(HOUR), "time", *NAMES, count=F.count("*"))
    return counted.where("count = 1").select(*NAMES)


def repeats(events: DataFrame, _: DataFrame) -> DataFrame:
    """The first of the rows that are equal in all values."""
    return events.transform(first_of_each(*NAMES, event_time="time", within=HOUR)).select(*NAMES)


def as_of(events: DataFrame, versions: DataFrame) -> DataFrame:
    """The values of the version of each row's number."""
    own = versions.withColumnRenamed("time", "since")
    joined = join_as_of(events.select("id", "time"), own, ("id",), at="time", since="since")
    return joined.select(*NAMES)


def kept(events: DataFrame, _: DataFrame) -> DataFrame:
    """The rows of a condition that every value takes part in."""
    any_of = F.coalesce(*[F.col(v) == F.col(v) for v in VALUES], F.lit(True))
    return events.transform(keep(any_of, event_time="time")).select(*NAMES)


BUILDS: Final[dict[str, tuple[Build, int]]] = {
    "tumbling windows": (per(TumblingWindow(HOUR)), 1),
    "sliding windows": (per(SlidingWindow(HOUR, HOUR / 2)), 2),
    "sessions": (per(SessionWindow(HOUR)), 1),
    "groups": (groups, 1),
    "repeats": (repeats, 1),
    "as of": (as_of, 1),
    "kept": (kept, 1),
}
"""Builds of rows and of a static table of them, and how often a row comes out."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of the extremes, all within a minute, and two of rows that close their windows."""
    made = tmp_path_factory.mktemp("extremes")
    # A group's zero has no sign.
    sent = pa.Table.from_pylist(unsigned(rows().to_pylist()), rows().schema)
    times = [NOON + timedelta(seconds=n) for n in range(sent.num_rows)]
    timed = sent.append_column("time", pa.array(times, pa.timestamp("us", "UTC")))
    # As the door marks rows: operators choose by their order of arrival.
    timed = timed.append_column("_ingest_batch", pa.array([0] * sent.num_rows, pa.int64()))
    timed = timed.append_column("_file", pa.array(["0"] * sent.num_rows))
    timed = timed.append_column("_row", pa.array(range(sent.num_rows), pa.int64()))
    pyarrow.parquet.write_table(timed, made / "0.parquet")
    # The second one makes a batch behind the watermark of the first: where a session that others
    # use is told to make none without data, nothing else does.
    for n in (1, 2):
        row = {"id": -1, "time": NOON + n * 99 * HOUR, "_ingest_batch": n, "_file": str(n)}
        closing = pa.Table.from_pylist([{**row, "_row": 0}], timed.schema)
        pyarrow.parquet.write_table(closing, made / f"{n}.parquet")
    for n in range(3):
        # Files are read in the order of these times.
        os.utime(made / f"{n}.parquet", (1_700_000_000 + n, 1_700_000_000 + n))
    return made


def unsigned(found: list[dict[str, object]]) -> list[dict[str, object]]:
    return [
        {name: 0.0 if v == 0.0 and isinstance(v, float) else v for name, v in row.items()}
        for row in found
    ]


@pytest.mark.parametrize("name", BUILDS)
@pytest.mark.parametrize("live", [pytest.param(True, marks=pytest.mark.long), False])
def test_every_extreme_comes_through(
    spark: SparkSession, folder: Path, tmp_path: Path, name: str, live: bool
) -> None:
    build, times = BUILDS[name]
    table = spark.read.parquet(str(folder))
    found: list[pa.Table] = []
    if live:
        source = spark.readStream.schema(table.schema).option("maxFilesPerTrigger", 1)
        events = source.parquet(str(folder)).withWatermark("time", "1 minute")
        writer = build(events, table).writeStream.foreachBatch(
            lambda b, _: found.append(b.toArrow())
        )
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
    else:
        found.append(build(table, table).toArrow())
    made = pa.concat_tables(found).filter(pa.compute.field("id") >= 0)
    expected = pa.Table.from_pylist(unsigned(rows().to_pylist()), rows().schema)
    assert plain(made.cast(rows().schema)) == sorted(plain(expected) * times, key=row_id)


def row_id(row: str) -> int:
    return int(row.split(",")[0].removeprefix("{'id': "))
