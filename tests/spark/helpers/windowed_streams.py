"""Streams of native windows over the sensors' readings, kept by days."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, Literal

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from rivermark import Daily, Ingest, Stream, Table
from rivermark.operators import EventWindow, SessionWindow, per_window
from rivermark.process import Millis
from rivermark.process.windows import Sessions, WindowAggregate, WindowContext
from tests.spark.helpers.sensors import FIRST_DAY, READINGS

COUNTED: Final = StructType(
    [
        StructField("rule", StringType()),
        StructField("sensor", StringType()),
        StructField("window_start", TimestampType()),
        StructField("window_end", TimestampType()),
        StructField("readings", LongType()),
    ]
)
HALF_AN_HOUR: Final = timedelta(minutes=30)


def counted(*windows: EventWindow) -> Callable[[DataFrame], DataFrame]:
    """The number of readings by sensor in each window of every rule."""

    def build(readings: DataFrame) -> DataFrame:
        counts = [
            per_window(readings, window, "at", "sensor", readings=F.count(F.lit(1))).select(
                F.lit(str(number)).alias("rule"), *COUNTED.names[1:]
            )
            for number, window in enumerate(windows)
        ]
        every = counts[0]
        for other in counts[1:]:
            every = every.unionByName(other)
        return every

    return build


class Read(msgspec.Struct, frozen=True):
    """A reading as sessions need it."""

    sensor: str
    at: Millis


class Counted(msgspec.Struct, frozen=True):
    """A row of the counts."""

    rule: str
    sensor: str
    window_start: Millis
    window_end: Millis
    readings: int


class ProcessSessions(WindowAggregate[Read, int, Counted]):
    """Sessions of half an hour by a window process."""

    key = "sensor"
    time = "at"
    windows = Sessions(HALF_AN_HOUR)
    late = None

    def update(self, value: int | None, event: Read) -> int:
        return (value or 0) + 1

    def combine(self, one: int, other: int) -> int:
        return one + other

    def on_window(self, value: int, ctx: WindowContext[Counted]) -> None:
        ctx.emit(Counted("0", ctx.key, ctx.window.start, ctx.window.end, value))


def windowed(
    name: str,
    *windows: EventWindow,
    by: Literal["window_start", "window_end"] = "window_start",
    source: Ingest | Stream = READINGS,
    **changes: Any,
) -> Stream:
    """Windows of those rules (sessions of half an hour) in a table with days by one of the ends."""
    declared: dict[str, Any] = {
        "reads": (source,),
        "build": counted(*(windows or (SessionWindow(HALF_AN_HOUR),))),
        "writes": Table(
            name=name,
            schema=COUNTED,
            description="Readings in windows.",
            event_time="window_end",
            keys=("rule", "sensor", "window_start"),
            days=Daily(column=by, start=FIRST_DAY),
        ),
        "group": "test",
        "margin": timedelta(hours=6),
    }
    return Stream(**(declared | changes))
