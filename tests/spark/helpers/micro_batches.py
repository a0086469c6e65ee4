"""Feeds rows to a `build` as a streaming query, cut into micro-batches as a test wants them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from rivermark.operators.windows import interval
from simulator.landing.json_lines import Value, json_line

Rows = Sequence[Mapping[str, Value]]


@dataclass(frozen=True)
class Feed:
    """One input: its schema, its event time, how late it may be, and its rows batch by batch."""

    schema: StructType
    event_time: str
    lateness: timedelta
    batches: Sequence[Rows]


@dataclass
class Streamed:
    """What a query gave: rows in order of emission, and what its operators reported at the end."""

    rows: list[Row]
    state_rows: int
    dropped_as_late: int
    batches: int
    emitted_by_batch: dict[int, list[Row]] = field(default_factory=dict)


def streamed(
    spark: SparkSession, folder: Path, build: Callable[..., DataFrame], *feeds: Feed
) -> Streamed:
    """Run `build` in append mode: micro-batch n takes batch n of each feed; then drained."""
    inputs = [_stream(spark, folder / f"in{n}", feed) for n, feed in enumerate(feeds)]
    emitted: dict[int, list[Row]] = {}

    def take(batch: DataFrame, number: int) -> None:
        emitted[number] = batch.collect()

    # The session has it as the last stream before needed it.
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    query = (
        build(*inputs)
        .writeStream.foreachBatch(take)
        .outputMode("append")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    progress = query.recentProgress
    return Streamed(
        rows=[row for number in sorted(emitted) for row in emitted[number]],
        state_rows=sum(o.numRowsTotal for o in progress[-1].stateOperators),
        dropped_as_late=sum(
            o.numRowsDroppedByWatermark for p in progress for o in p.stateOperators
        ),
        batches=len(progress),
        emitted_by_batch=emitted,
    )


def as_table(spark: SparkSession, feed: Feed) -> DataFrame:
    """The same rows as a table, with the order of their arrival where the schema has it."""
    lines = spark.createDataFrame([(json_line(row),) for row in arrived(feed)], "line string")
    return lines.select(F.from_json("line", feed.schema).alias("row")).select("row.*")


def arrived(feed: Feed) -> list[dict[str, Value]]:
    """Every row with its batch, file and line, as the door marks admitted rows."""
    marked = {"_ingest_batch", "_file", "_row"} <= set(feed.schema.names)
    found: list[dict[str, Value]] = []
    for number, rows in enumerate(feed.batches):
        for line, row in enumerate(rows, start=1):
            place: dict[str, Value] = {
                "_ingest_batch": number,
                "_file": f"{number:04}",
                "_row": line,
            }
            found.append({**place, **row} if marked else {**row})
    return found


def plain(rows: Sequence[Row], *columns: str) -> list[tuple[object, ...]]:
    """Rows as sorted tuples of these columns, to compare whatever their order."""
    return sorted((tuple(row[c] for c in columns) for row in rows), key=repr)


def _stream(spark: SparkSession, folder: Path, feed: Feed) -> DataFrame:
    folder.mkdir(parents=True)
    rows = arrived(feed)
    for number, batch in enumerate(feed.batches):
        mine, rows = rows[: len(batch)], rows[len(batch) :]
        path = folder / f"{number:04}.json"
        path.write_text("".join(json_line(row) + "\n" for row in mine))
        os.utime(path, (1_000_000_000 + number,) * 2)
    return (
        spark.readStream.schema(feed.schema)
        .option("maxFilesPerTrigger", 1)
        .json(str(folder))
        .withWatermark(feed.event_time, interval(feed.lateness))
    )
