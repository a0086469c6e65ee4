"""Producers that say how far they are complete: results follow before their events would allow."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import TimestampType

from rivermark import Field, Topology
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.ingest_replay.run import replay_ingest
from rivermark.ingest.admission import DRIVER_BYTES
from rivermark.ingest.watermark_recovery import admission_watermark
from rivermark.runtime.checkpoint.watermarks import last_reached
from rivermark.settings import Settings
from rivermark.sources import PerProducer
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import (
    FOLDER,
    MINUTE,
    READING,
    TEN,
    reading,
    readings,
    rows,
    run,
    windows,
)

pytestmark = pytest.mark.spark

HOUR: Final = timedelta(hours=1)
STORED: Final = TEN.replace(tzinfo=None)
"""As rows of a table have it."""
YEAR: Final = 365 * 24 * 60
MARKED: Final = readings(
    producers=r"^([^/]+)/",
    fields=(*READING.fields, Field("complete_until", TimestampType())),
    # Of disorder that only a producer itself can know the end of.
    lateness=HOUR,
    watermark=PerProducer(idle=timedelta(seconds=2.5), mark="complete_until"),
    days=None,
    max_ahead=timedelta(days=1),
)


def line(minute: float, until: float | None = None) -> str:
    """A reading, by which its producer is complete up to another minute."""
    mark = {} if until is None else {"complete_until": (TEN + until * MINUTE).isoformat()}
    return reading(minute, **mark)


@pytest.mark.long
@pytest.mark.parametrize("driver_bytes", [DRIVER_BYTES, 0], ids=["in the driver", "on Spark"])
def test_windows_close_by_what_producers_say_and_a_replay_decides_the_same(
    spark: SparkSession,
    settings: Settings,
    landing: Landing,
    monkeypatch: pytest.MonkeyPatch,
    driver_bytes: int,
) -> None:
    monkeypatch.setattr("rivermark.ingest.admission.DRIVER_BYTES", driver_bytes)
    hourly = windows(MARKED, minutes=5)
    files = {
        "a/0.json": [line(1), line(14), line(3)],
        "b/1.json": [line(2), line(13)],
        "a/2.json": [line(4), line(14.5, until=10)],
        "b/3.json": [line(8, until=5)],
        # Behind what both have said; a mark of its own among them moves nothing back.
        "b/4.json": [line(4.5), line(11, until=3), line(12, until=99 * YEAR)],
        "a/5.json": [line(16)],
        "b/6.json": [line(15, until=15)],
    }
    for name, lines in files.items():
        landing.put(f"{FOLDER}/{name}", *lines)

    run(spark, settings, MARKED, hourly)

    [late] = rows(spark, settings, MARKED.late, "at", "_watermark")
    assert tuple(late) == (STORED + 4.5 * MINUTE, STORED + 5 * MINUTE)
    [wild] = rows(spark, settings, MARKED.quarantine, "_file", "reasons")
    assert (wild["_file"], wild["reasons"]) == ("b/4.json", ["mark_ahead"])
    assert admission_watermark(settings.lake(), MARKED) == TEN + 10 * MINUTE
    assert last_reached(settings.lake(), hourly) == TEN + 10 * MINUTE
    closed = rows(spark, settings, hourly.tables[0], "window_start", "readings")
    assert [tuple(row) for row in closed] == [(STORED, 4), (STORED + 5 * MINUTE, 1)]

    context = BackfillContext(
        settings=settings, topology=Topology([MARKED]), spark=lambda: spark, run_id="again"
    )
    same = replay_ingest(context, MARKED.name, date(2024, 3, 1), date(2024, 3, 1))
    assert (same.turns, same.rows_changed) == ((), 0)
