"""Windows, repeats, joins, a second aggregation: the same rows whatever the batches."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from pyspark.sql import Row, SparkSession

from rivermark import Stream
from rivermark.runtime.query import backlog
from rivermark.runtime.query.backlog import BATCH_BYTES
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import (
    MINUTE,
    READINGS,
    busiest,
    one_file_a_batch,
    ordered,
    rows,
    run,
    windows,
)
from tests.spark.helpers.stateful_streams import ECHOES, answers, distinct, land_feeds

pytestmark = pytest.mark.spark

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - as Spark gives times to Python, in UTC
FIVE = 5 * MINUTE
Tuples = list[tuple[object, ...]]


@pytest.mark.long
def test_no_row_is_dropped_and_all_results_are_equal_whatever_the_size_of_batches(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    land_feeds(landing, seed=5, files=4)
    run(spark, settings, *one_file_a_batch(monkeypatch, READINGS, ECHOES))
    readings = rows(spark, settings, READINGS.admitted)
    assert len({r["_ingest_batch"] for r in readings}) == 4

    results = []
    for files, most in ((1, BATCH_BYTES), (3, BATCH_BYTES), (1000, 1)):
        monkeypatch.setattr(backlog, "BATCH_BYTES", most)
        cut = settings.model_copy(update={"files_per_trigger": files})
        streams = all_kinds(f"_{files}")
        summaries = run(spark, cut, *streams)
        assert {s.dropped_by_watermark for s in summaries.values()} == {0}
        results.append([rows(spark, settings, s.tables[0], *columns_of(s)) for s in streams])
    assert results[0] == results[1] == results[2]
    # A batch of events ends by bytes too, however many files it might take.
    assert summaries["test/distinct_1000"].batches >= 4

    per_window, best, once, per_window_once, joined = results[0]
    assert ordered(per_window) == final_windows(readings)
    assert ordered(best) == busiest_of(per_window)
    assert Counter(r["note"] for r in once) == dict.fromkeys({r["note"] for r in readings}, 1)
    assert len(once) < len(readings)
    assert ordered(per_window_once) == final_windows(once)
    echoes = rows(spark, settings, ECHOES.admitted)
    assert ordered(joined) == final_answers(readings, echoes)


def columns_of(stream: Stream) -> list[str]:
    """All columns but those that tell which of two equal copies was kept."""
    names = stream.tables[0].schema.fieldNames()
    return [n for n in names if not n.startswith("_") and n != "flags"]


def all_kinds(suffix: str) -> tuple[Stream, ...]:
    """The streams under test, under names of their own."""

    def named(stream: Stream, name: str) -> Stream:
        return replace(stream, name=name, writes=replace(stream.tables[0], name=name))

    per_window = named(windows(), f"test/windows{suffix}")
    best = named(busiest(per_window), f"test/busiest{suffix}")
    once = distinct(suffix)
    per_window_once = named(windows(once), f"test/windows_once{suffix}")
    return per_window, best, once, per_window_once, answers(suffix=suffix)


def final_windows(readings: list[Row]) -> Tuples:
    """Windows of five minutes whose end the watermark has reached, counted in plain Python."""
    watermark = max(r["at"] for r in readings) - MINUTE
    counts: Counter[tuple[str, datetime]] = Counter()
    totals: dict[tuple[str, datetime], Decimal] = {}
    for r in readings:
        key = r["sensor"], EPOCH + (r["at"] - EPOCH) // FIVE * FIVE
        counts[key] += 1
        totals[key] = totals.get(key, Decimal(0)) + r["temperature"]
    return ordered(
        (sensor, start, start + FIVE, n, totals[sensor, start])
        for (sensor, start), n in counts.items()
        if start + FIVE <= watermark
    )


def busiest_of(per_window: list[Row]) -> Tuples:
    """The sensor with the most readings of each window; of equals the last by name."""
    best: dict[datetime, tuple[int, str]] = {}
    for r in per_window:
        best[r["window_end"]] = max(
            best.get(r["window_end"], (0, "")), (r["readings"], r["sensor"])
        )
    return ordered((end, n, sensor) for end, (n, sensor) in best.items())


def final_answers(readings: list[Row], echoes: list[Row]) -> Tuples:
    """Every pair, and each reading without one that the watermark of both feeds has left behind."""
    watermark = min(max(r["at"] for r in side) for side in (readings, echoes)) - MINUTE
    found: Tuples = []
    for r in readings:
        near = [
            e for e in echoes
            if e["note"] == r["note"] and abs(e["at"] - r["at"]) <= timedelta(minutes=2)
        ]  # fmt: skip
        found += [(r["sensor"], r["at"], r["note"], True)] * len(near)
        if not near and r["at"] + timedelta(minutes=2) < watermark:
            found.append((r["sensor"], r["at"], r["note"], False))
    return ordered(found)
