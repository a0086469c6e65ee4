"""Spark's own operators by a watermark that rows carry, against one of the newest event time."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from rivermark.operators.filters import keep
from rivermark.runtime.spark.watermarks import with_carried_watermark
from tests.spark.helpers.sensors import MINUTE, TEN

pytestmark = [pytest.mark.spark, pytest.mark.long]

COMMITS: Final[tuple[tuple[list[tuple[str, float]], float | None], ...]] = (
    ([("a", 0), ("b", 0)], None),
    ([("a", 60), ("b", 6)], 5),
    ([("a", 61), ("b", 7)], 10),
    ([("b", 12), ("b", 13)], 11),
    ([("b", 70)], 59),
    ([("b", 71)], 60),
    ([("b", 72)], 60.0),
)
"""Events by minute, and the watermark after them: b is an hour behind a."""
SCHEMA: Final = "who string, at timestamp, _watermark_after timestamp"
Found = list[tuple[str, float]]


def minute(at: datetime) -> float:
    return (at.replace(tzinfo=UTC) - TEN) / MINUTE


@pytest.fixture
def read(spark: SparkSession, tmp_path: Path) -> Callable[[], DataFrame]:
    """The commits as a stream, a file a batch."""
    folder = tmp_path / "commits"
    folder.mkdir()
    stamp = pa.timestamp("us", "UTC")
    for number, (events, after) in enumerate(COMMITS):
        left = None if after is None else TEN + after * MINUTE
        columns = {
            "who": pa.array([who for who, _ in events]),
            "at": pa.array([TEN + at * MINUTE for _, at in events], stamp),
            "_watermark_after": pa.array([left] * len(events), stamp),
        }
        path = folder / f"{number}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1000 + number, 1000 + number))

    def stream() -> DataFrame:
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        rows = reader.parquet(str(folder))
        return with_carried_watermark(rows, "at", 2 * MINUTE, timedelta(0))

    return stream


def drained(built: DataFrame, folder: Path) -> dict[int, list[Row]]:
    """The rows of each batch; nothing was dropped behind the watermark."""
    batches: dict[int, list[Row]] = {}

    def write(rows: DataFrame, batch: int) -> None:
        if written := rows.collect():
            batches[batch] = written

    writer = built.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "c"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    for progress in query.recentProgress:
        assert [s["numRowsDroppedByWatermark"] for s in progress["stateOperators"]] == [0]
    return batches


def starts(batches: dict[int, list[Row]]) -> dict[int, Found]:
    return {n: sorted((r["who"], minute(r["start"])) for r in rows) for n, rows in batches.items()}


def test_windows_and_sessions_close_when_the_slowest_has_passed_them(
    read: Callable[[], DataFrame], tmp_path: Path
) -> None:
    windows = read().groupBy(F.window("at", "5 minutes"), "who").count()
    found = starts(drained(windows.select("window.start", "who"), tmp_path / "windows"))
    assert found == {2: [("a", 0), ("b", 0)], 3: [("b", 5)], 5: [("b", 10)]}

    sessions = read().groupBy(F.session_window("at", "3 minutes"), "who").count()
    found = starts(drained(sessions.select("session_window.start", "who"), tmp_path / "sessions"))
    assert found == {2: [("a", 0), ("b", 0)], 3: [("b", 6)], 5: [("b", 12)]}


def test_a_filter_that_keeps_event_time_lets_dropped_rows_move_the_watermark(
    read: Callable[[], DataFrame], tmp_path: Path
) -> None:
    kept = read().transform(keep(F.col("who") == "b", event_time="at"))
    windows = kept.groupBy(F.window("at", "5 minutes"), "who").count()
    found = starts(drained(windows.select("window.start", "who"), tmp_path))
    assert found == {2: [("b", 0)], 3: [("b", 5)], 5: [("b", 10)]}
