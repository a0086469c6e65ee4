"""A second feed that answers the readings, and streams with state over both."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StringType, StructField, StructType, TimestampType

from rivermark import Daily, Ingest, Stream, Table
from rivermark.operators.repeats import first_of_each
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FILES, FIRST_DAY, FOLDER, MINUTE, READINGS, reading

ECHOES: Final = replace(
    READINGS,
    name="test/echoes",
    source=replace(FILES, folder="echoes"),
    description="Answers to readings, by their note.",
)
APART: Final = 2 * MINUTE


def land_feeds(landing: Landing, seed: int, files: int, hour: float = 0) -> None:
    """Both feeds in turn: disorder and repeats within the lateness, some readings unanswered."""
    random = Random(seed)
    repeats: list[str] = []
    for number in range(files):
        minute = 60.0 * hour + 1.5 * number
        lines, answers = repeats, []
        repeats = []
        for row in range(8):
            note = f"{hour}.{number}.{row}"
            sensor = f"s{random.randint(1, 3)}"
            line = reading(minute + random.uniform(0, 0.7), sensor, row + 0.25, note=note)
            lines.append(line)
            if random.random() < 0.3:
                repeats.append(line)
            if random.random() < 0.7:
                answers.append(reading(minute + random.uniform(0, 2.4), note=note))
        landing.put(f"{FOLDER}/{hour}.{number:02}.json", *lines)
        landing.put(f"echoes/{hour}.{number:02}.json", *answers)


def distinct(suffix: str = "") -> Stream:
    """Each reading once, by its note: events go on as they came."""
    return Stream(
        name=f"test/distinct{suffix}",
        reads=(READINGS,),
        build=lambda rows: rows.transform(first_of_each("note", event_time="at", within=MINUTE)),
        writes=replace(READINGS.admitted, name=f"test/distinct{suffix}"),
        description="Each reading once.",
        group="test",
        volume="events",
        margin=MINUTE,
    )


def answered(readings: DataFrame, echoes: DataFrame) -> DataFrame:
    """Each reading with or without its echo."""
    mine = readings.select("sensor", "at", "note")
    theirs = echoes.select(F.col("at").alias("echo_at"), F.col("note").alias("echo_note"))
    bound = F.lit(APART)
    near = F.col("echo_at").between(F.col("at") - bound, F.col("at") + bound)
    joined = mine.join(theirs, (F.col("note") == F.col("echo_note")) & near, "left_outer")
    return joined.select("sensor", "at", "note", F.col("echo_note").isNotNull().alias("answered"))


def answers(source: Ingest | Stream = READINGS, suffix: str = "") -> Stream:
    """The join as a stream."""
    return Stream(
        name=f"test/answers{suffix}",
        reads=(source, ECHOES),
        build=answered,
        writes=Table(
            name=f"test/answers{suffix}",
            schema=StructType(
                [
                    StructField("sensor", StringType()),
                    StructField("at", TimestampType()),
                    StructField("note", StringType()),
                    StructField("answered", BooleanType()),
                ]
            ),
            description="Readings and whether they were answered.",
            event_time="at",
            days=Daily(column="at", start=FIRST_DAY),
        ),
        description="Readings and whether they were answered.",
        group="test",
        margin=APART,
    )
