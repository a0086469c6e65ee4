"""Several inputs of one process: a feed and its answers share state; late rows come on a third."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StringType, StructField, StructType, TimestampType

from rivermark import Daily, Output, Stream, Table
from rivermark.process import Context, Input, KeyedProcess, SideOutput, ValueState
from rivermark.process.spark import main_rows, run_process, side_rows
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FIRST_DAY, FOLDER, READINGS, TEN, reading, rows, run
from tests.spark.helpers.stateful_streams import ECHOES

pytestmark = pytest.mark.spark

APART = 120_000


class Noted(msgspec.Struct, frozen=True):
    note: str
    at: int


def note_of(event: Noted) -> str:
    """The key of an echo, by a function that only Python can evaluate."""
    return event.note


class Answer(msgspec.Struct, frozen=True):
    """A reading, and whether its echo came within two minutes."""

    note: str
    at: int
    answered: bool


class Answered(KeyedProcess[Noted, Answer]):
    """Keeps a reading until its echo comes or two minutes have passed."""

    echoes = Input(Noted, key=note_of, time="at")
    readings = Input(Noted, key="note", time="at")
    late = Input(Noted, key="note", time="at")

    lost = SideOutput("lost", Noted)
    reading: ValueState[Noted]
    echoed: ValueState[bool]

    order = "event_time"
    hold = True

    def on_readings(self, event: Noted, ctx: Context[Answer]) -> None:
        if self.echoed.value:
            self.echoed.clear()  # its timer finds nothing later
            ctx.emit(Answer(event.note, event.at, answered=True))
            return
        self.reading.value = event
        ctx.timers.event.register(event.at + APART)

    def on_echoes(self, event: Noted, ctx: Context[Answer]) -> None:
        found = self.reading.value
        if found is None:
            self.echoed.value = True
            ctx.timers.event.register(event.at + APART)
            return
        ctx.timers.event.delete(found.at + APART)
        self.reading.clear()
        ctx.emit(Answer(event.note, found.at, answered=True))

    def on_late(self, event: Noted, ctx: Context[Answer]) -> None:
        ctx.output(self.lost, event)

    def on_timer(self, at: int, ctx: Context[Answer]) -> None:
        found = self.reading.value
        self.reading.clear()
        self.echoed.clear()
        if found is not None:
            ctx.emit(Answer(ctx.key, found.at, answered=False))


def table(name: str, *columns: StructField) -> Table:
    schema = StructType(
        [StructField("note", StringType()), StructField("at", TimestampType()), *columns]
    )
    days = Daily(column="at", start=FIRST_DAY)
    return Table(name=name, schema=schema, description="Notes.", event_time="at", days=days)


ANSWERS = table("test/answered", StructField("answered", BooleanType()))
LOST = table("test/lost")


def with_note(frame: DataFrame) -> DataFrame:
    return frame.where(F.col("note").isNotNull())


ANSWERED = Stream(
    name="test/answered",
    reads=(READINGS, ECHOES, READINGS.late),
    build=run_process(
        Answered,
        inputs=("readings", "echoes", "late"),
        idle=("late",),
        prepare={"late": with_note},
        buckets=16,
    ),
    writes=(Output(ANSWERS, main_rows), Output(LOST, side_rows("lost"))),
    lateness=timedelta(minutes=1),
    margin=timedelta(minutes=2),
    description="Readings and whether they were answered.",
    group="test",
)


@pytest.mark.long
def test_inputs_share_state_by_key_and_late_rows_reach_their_handler(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    landing.put(f"{FOLDER}/1.json", reading(0, note="a"), reading(1, note="b"))
    landing.put("echoes/1.json", reading(1.5, note="a"), reading(4, note="c"))
    run(spark, settings, READINGS, ECHOES, ANSWERED)
    landing.put(f"{FOLDER}/2.json", reading(5, note="c"), reading(20, note="d"))
    run(spark, settings, READINGS)
    landing.put(f"{FOLDER}/3.json", reading(2, note="late"), reading(21, note="e"))
    landing.put("echoes/2.json", reading(3.5, note="b"), reading(30, note="z"))
    run(spark, settings, READINGS, ECHOES, ANSWERED)

    def written() -> tuple[list[Any], list[Any]]:
        answers = [(r["note"], r["answered"]) for r in rows(spark, settings, ANSWERS)]
        return answers, [tuple(r) for r in rows(spark, settings, LOST)]

    expected = (
        [("a", True), ("b", False), ("c", True)],
        [("late", (TEN + timedelta(minutes=2)).replace(tzinfo=None))],
    )
    assert written() == expected
