"""Windows of process functions and Spark's own, on what both can do: equal rows."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from rivermark import Stream, Table
from rivermark.operators import windows as native
from rivermark.process import KeyedProcess, windows
from rivermark.process.spark import run_process
from rivermark.process.windows import WindowAggregate, WindowContext

pytestmark = pytest.mark.spark

MINUTE = timedelta(minutes=1)
TEN, THREE = 10 * MINUTE, 3 * MINUTE
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


class Reading(msgspec.Struct, frozen=True):
    sensor: str
    at: int
    value: int


class Summed(msgspec.Struct, frozen=True):
    sensor: str
    window_start: int
    window_end: int
    total: int
    count: int


class Sums(WindowAggregate[Reading, tuple[int, int], Summed]):
    """The sum and number of a sensor's readings in a window."""

    key = "sensor"
    time = "at"
    late = None

    def update(self, value: tuple[int, int] | None, event: Reading) -> tuple[int, int]:
        total, count = value or (0, 0)
        return total + event.value, count + 1

    def combine(self, one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
        return one[0] + other[0], one[1] + other[1]

    def on_window(self, value: tuple[int, int], ctx: WindowContext[Summed]) -> None:
        ctx.emit(Summed(ctx.key, ctx.window.start, ctx.window.end, *value))


class Shifted(Sums):
    windows = windows.Tumbling(TEN, offset=THREE)


class Sliding(Sums):
    windows = windows.Sliding(TEN, THREE)


class BySession(Sums):
    windows = windows.Sessions(THREE)


READINGS = Table(
    name="test/readings",
    schema=StructType(
        [
            StructField("sensor", StringType()),
            StructField("at", TimestampType()),
            StructField("value", LongType()),
        ]
    ),
    description="Readings.",
    event_time="at",
)
SUMS = Table(
    name="test/sums",
    schema=StructType(
        [
            StructField("sensor", StringType()),
            StructField("window_start", TimestampType()),
            StructField("window_end", TimestampType()),
            StructField("total", LongType()),
            StructField("count", LongType()),
        ]
    ),
    description="Sums of windows.",
    event_time="window_end",
)


def readings() -> list[tuple[str, datetime, int]]:
    """In disorder; some on the borders of windows, some exactly a gap apart."""
    draw = random.Random(5)
    whole = [("a", NOON + n * MINUTE, n) for n in (0, 3, 6, 10, 13, 14, 20, 23, 50, 53)]
    found = [
        (draw.choice("abcd"), NOON + timedelta(milliseconds=draw.randrange(7_200_000)), n)
        for n in range(120)
    ]
    found += whole
    draw.shuffle(found)
    return found


@pytest.mark.parametrize(
    ("process", "window"),
    [
        (Shifted, native.TumblingWindow(TEN, offset=THREE)),
        (Sliding, native.SlidingWindow(TEN, every=THREE)),
        (BySession, native.SessionWindow(THREE)),
    ],
)
def test_rows_are_those_of_sparks_own_windows(
    spark: SparkSession, process: type[KeyedProcess[Any, Any]], window: native.EventWindow
) -> None:
    stream = Stream(
        name="test/sums",
        reads=(READINGS,),
        build=run_process(process, buckets=2),
        writes=SUMS,
        lateness=MINUTE,
        margin=timedelta(hours=2),
        description="Sums of windows.",
        group="test",
    )
    frame = spark.createDataFrame(readings(), READINGS.schema)
    columns = SUMS.schema.names
    ours = stream.build(frame).select(*columns).collect()
    theirs = native.per_window(
        frame, window, "at", "sensor", total=F.sum("value"), count=F.count("*")
    )

    def ordered(rows: list[Row]) -> list[Row]:
        return sorted(rows, key=str)

    assert ordered(ours) == ordered(theirs.select(*columns).collect())
    assert len(ours) > 10
