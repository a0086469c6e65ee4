"""A rule over the small world of sensors, the same by hand, and the stream that runs it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import groupby, pairwise
from typing import Any, Final

import msgspec
from pyspark.sql.types import (
    DecimalType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark import Daily, Output, Stream, Table
from rivermark.process import Context, KeyedProcess, SideOutput, ValueState
from rivermark.process.spark import (
    DEAD_LETTER_SCHEMA,
    dead_letters,
    main_rows,
    run_process,
    side_rows,
)
from tests.spark.helpers.sensors import FIRST_DAY, READINGS

SILENCE: Final = timedelta(minutes=10)
MILLIS: Final = 600_000
STEP: Final = Decimal("30.000")


class Reading(msgspec.Struct, frozen=True):
    """What the rule reads of a reading; `at` in milliseconds."""

    sensor: str
    at: int
    temperature: Decimal
    note: str | None = None


class Jump(msgspec.Struct, frozen=True):
    """A reading that differs from the one before by more than STEP."""

    sensor: str
    at: int
    by: Decimal


class Silent(msgspec.Struct, frozen=True):
    """A sensor that has not been heard of since SILENCE before `until`."""

    sensor: str
    until: datetime
    last: Decimal


class Watched(KeyedProcess[Reading, Jump]):
    """Keeps the last reading of each sensor until it has been silent for long."""

    key = "sensor"
    time = "at"
    order = "event_time"
    hold = True
    dead_letter = True

    silent = SideOutput("silent", Silent)
    last: ValueState[Reading]

    def on_event(self, event: Reading, ctx: Context[Jump]) -> None:
        last = self.last.value
        if event.note == "poison":
            raise ValueError("met a poisoned reading")
        if last is not None:
            ctx.timers.event.delete(last.at + MILLIS)
            if abs(event.temperature - last.temperature) > STEP:
                ctx.emit(Jump(event.sensor, event.at, event.temperature - last.temperature))
                ctx.count("jumps")
                ctx.gauge("step", float(STEP))
        self.last.value = event
        ctx.timers.event.register(event.at + MILLIS)

    def on_timer(self, at: int, ctx: Context[Jump]) -> None:
        last = self.last.value
        assert last is not None
        ctx.output(self.silent, Silent(ctx.key, ctx.time, last.temperature))
        self.last.clear()


def table(name: str, event_time: str, *columns: StructField) -> Table:
    return Table(
        name=name,
        schema=StructType([StructField("sensor", StringType()), *columns]),
        description="Written by a process function.",
        event_time=event_time,
        keys=("sensor", event_time),
        days=Daily(column=event_time, start=FIRST_DAY),
    )


DEGREES: Final = DecimalType(9, 3)
JUMPS: Final = table(
    "test/jumps", "at", StructField("at", TimestampType()), StructField("by", DEGREES)
)
SILENCES: Final = table(
    "test/silences", "until", StructField("until", TimestampType()), StructField("last", DEGREES)
)
FAILED: Final = Table(
    name="test/watched_dead_letters",
    schema=DEAD_LETTER_SCHEMA,
    description="Readings that the rule could not handle.",
    event_time="event_time",
    days=Daily(column="event_time", start=FIRST_DAY),
)
WATCHED: Final = Stream(
    name="test/watched",
    reads=(READINGS,),
    build=run_process(Watched, buckets=4),
    writes=(
        Output(JUMPS, main_rows),
        Output(SILENCES, side_rows("silent")),
        Output(FAILED, dead_letters),
    ),
    description="Jumps and silences of sensors.",
    group="test",
    margin=timedelta(days=1),
)


def watched(process: Any = Watched, **changes: Any) -> Stream:
    """The stream with another process or other fields."""
    return replace(WATCHED, **({"build": run_process(process, buckets=4)} | changes))


def jumps_by_hand(readings: Iterable[tuple[str, datetime, Decimal]]) -> list[tuple[Any, ...]]:
    """What the rule's main output must be, straight from what it says."""
    return [
        (sensor, after[1], after[2] - before[2])
        for sensor, mine in groupby(sorted(readings), key=lambda each: each[0])
        for before, after in pairwise(mine)
        if after[1] - before[1] < SILENCE + timedelta(milliseconds=1)
        and abs(after[2] - before[2]) > STEP
    ]


def silences_by_hand(
    readings: Iterable[tuple[str, datetime, Decimal]], watermark: datetime | None = None
) -> list[tuple[Any, ...]]:
    """The same of its silences up to a watermark; without one, of all of them."""
    found = []
    for sensor, grouped in groupby(sorted(readings), key=lambda each: each[0]):
        mine = list(grouped)
        for place, (_, at, last) in enumerate(mine):
            after = mine[place + 1][1] if place + 1 < len(mine) else None
            until = at + SILENCE
            if (after is None or after > until) and (watermark is None or until <= watermark):
                found.append((sensor, until, last))
    return found
