"""Cases N057 and N066 to N068: what lies over the border of a day that is computed again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from rivermark import Stream
from rivermark.backfill.recompute import Order, rehearse
from rivermark.model.errors import PartitionStillOpen, RivermarkError, StreamFailed
from rivermark.operators import SessionWindow, SlidingWindow, TumblingWindow, first_of_each
from rivermark.process.spark import run_process
from rivermark.settings import Settings
from tests.spark.helpers.recomputing import recompute_days
from tests.spark.helpers.sensors import TEN, admit, reading, readings, rows, run
from tests.spark.helpers.stateful_streams import distinct
from tests.spark.helpers.windowed_streams import (
    HALF_AN_HOUR,
    ProcessSessions,
    counted,
    windowed,
)

pytestmark = pytest.mark.spark

FIRST, SECOND, THIRD, FIFTH = (date(2024, 3, day) for day in (1, 2, 3, 5))
MIDNIGHT = datetime(2024, 3, 2, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DUMP = readings(lateness=None)
WHOLE = (MIDNIGHT - 20 * MINUTE, MIDNIGHT + 42 * MINUTE, 5)


def at(minutes: float, **more: str) -> str:
    """A reading so many minutes after midnight of 2 March."""
    return reading((MIDNIGHT - TEN) / MINUTE + minutes, **more)


OVER_MIDNIGHT = (at(-20), at(-10), at(-1), at(5), at(12))
CLOSES = at(6 * 24 * 60, note="closes")


def sessions_of(
    spark: SparkSession, settings: Settings, stream: Stream
) -> list[tuple[datetime, datetime, int]]:
    found = rows(spark, settings, stream.tables[0], "window_start", "window_end", "readings")
    return [(r[0].astimezone(UTC), r[1].astimezone(UTC), r[2]) for r in found]


LONG = pytest.mark.long


# Short: all kinds of windows by every route (tests/spark/operators/test_any_route.py).
@pytest.mark.long
@pytest.mark.parametrize("by", ["window_start", "window_end"])
def test_n057_a_session_over_midnight_is_one_however_its_days_are_computed(
    spark: SparkSession, settings: Settings, by: str
) -> None:
    stream = windowed("test/sessions", by=by)  # type: ignore[arg-type]
    admit(settings, *OVER_MIDNIGHT, CLOSES)
    run(spark, settings, stream)
    assert sessions_of(spark, settings, stream) == [WHOLE]

    for first, last in ((FIRST, FIRST), (SECOND, SECOND), (FIRST, SECOND)):
        done = recompute_days(spark, settings, stream, first, last)
        assert sessions_of(spark, settings, stream) == [WHOLE]
        assert done.tables[stream.name].difference.same


@pytest.mark.parametrize("by", ["window_end", pytest.param("window_start", marks=LONG)])
def test_n057_a_refreshed_session_over_midnight_is_one_file_after_file(
    spark: SparkSession, settings: Settings, by: str
) -> None:
    stream = windowed("test/refreshed", by=by, source=DUMP, kind="refresh")  # type: ignore[arg-type]
    for lines in (OVER_MIDNIGHT[:3], OVER_MIDNIGHT[3:]):
        admit(settings, *lines)
        run(spark, settings, stream)

    assert sessions_of(spark, settings, stream) == [WHOLE]
    done = recompute_days(spark, settings, stream, SECOND)
    assert done.tables[stream.name].difference.same
    assert sessions_of(spark, settings, stream) == [WHOLE]


def test_n057_a_filter_of_the_build_stays_above_its_sessions(
    spark: SparkSession, settings: Settings
) -> None:
    sessions = windowed("test/sessions")
    stream = replace(sessions, build=lambda r: sessions.build(r).where(F.hour("window_start") < 12))
    admit(settings, *OVER_MIDNIGHT, CLOSES)
    run(spark, settings, stream)

    assert sessions_of(spark, settings, stream) == []


@pytest.mark.parametrize(
    ("build", "days"),
    [
        (counted(SessionWindow(HALF_AN_HOUR)), [THIRD]),
        pytest.param(counted(SessionWindow(HALF_AN_HOUR)), [FIRST, FIFTH], marks=LONG),
        pytest.param(run_process(ProcessSessions, buckets=2), [FIRST, THIRD, FIFTH], marks=LONG),
    ],
)
def test_n066_the_read_is_widened_until_no_session_touches_its_border(
    spark: SparkSession, settings: Settings, build: Any, days: list[date]
) -> None:
    stream = windowed("test/sessions", margin=HOUR, build=build)
    long = [at(20 * n - 24 * 60) for n in range(4 * 72)]
    admit(settings, *long, at(9 * 24 * 60))
    run(spark, settings, stream)
    whole = [(MIDNIGHT - 24 * HOUR, MIDNIGHT + 72 * HOUR + 10 * MINUTE, 288)]
    assert sessions_of(spark, settings, stream) == whole

    for day in days:
        done = recompute_days(spark, settings, stream, day)
        assert sessions_of(spark, settings, stream) == whole
        assert done.tables[stream.name].difference.same


@pytest.mark.long
def test_n066_a_session_without_end_is_refused(spark: SparkSession, settings: Settings) -> None:
    stream = windowed("test/sessions", SessionWindow(24 * HOUR))
    admit(settings, *[at(24 * 60 * day) for day in range(400)], at(24 * 60 * 500))
    run(spark, settings, stream)

    with pytest.raises(RivermarkError, match="a session of these days goes on at the border"):
        recompute_days(spark, settings, stream, date(2024, 10, 1))


def test_n066_a_session_that_the_stream_has_still_to_write_is_not_written_before(
    spark: SparkSession, settings: Settings
) -> None:
    stream = windowed("test/sessions", margin=HOUR)
    admit(settings, *[at(20 * n - 60) for n in range(12)], at(170, note="moves on"))
    run(spark, settings, stream)
    assert sessions_of(spark, settings, stream) == []

    with pytest.raises(PartitionStillOpen, match="has still to write it"):
        recompute_days(spark, settings, stream, FIRST)


@pytest.mark.parametrize(
    ("build", "operator"),
    [
        (first_of_each("note", event_time="at", within=timedelta(days=3)), "first_of_each within"),
        (None, "windows of 7 days, 0:00:00 each 1 day, 0:00:00"),
    ],
)
def test_n067_an_operator_that_reaches_beyond_the_margin_is_refused_at_the_start(
    spark: SparkSession, settings: Settings, build: Any, operator: str
) -> None:
    week = windowed("test/weeks", SlidingWindow(timedelta(days=7), timedelta(days=1)))
    repeats = replace(distinct(), lateness=timedelta(days=3), margin=timedelta(0))
    stream = week if build is None else replace(repeats, build=build)
    admit(settings, reading(0))

    with pytest.raises(StreamFailed, match=f"{operator}.*Declare a `margin` of at least"):
        run(spark, settings, stream)


@pytest.mark.long
def test_n067_with_that_margin_the_repeat_stays_out(
    spark: SparkSession, settings: Settings
) -> None:
    within = timedelta(days=3)
    stream = replace(
        distinct(),
        build=first_of_each("note", event_time="at", within=within),
        lateness=within,
        margin=within,
    )
    admit(settings, at(0, note="same"))
    admit(settings, at(3 * 24 * 60 - 60, note="same"))
    admit(settings, at(20 * 24 * 60, note="closes"))
    run(spark, settings.model_copy(update={"files_per_trigger": 1}), stream)
    before = rows(spark, settings, stream.tables[0], "at", "note")
    assert len(before) == 2

    recompute_days(spark, settings, stream, date(2024, 3, 4))
    assert rows(spark, settings, stream.tables[0], "at", "note") == before


@pytest.mark.long
def test_n068_a_chain_of_repeats_is_refused_and_nothing_is_changed(
    spark: SparkSession, settings: Settings
) -> None:
    stream = distinct()
    for number in range(12):
        admit(settings, reading(number * 5 / 6, note="same"))
    admit(settings, reading(4 * 24 * 60, note="closes"))
    run(spark, settings.model_copy(update={"files_per_trigger": 1}), stream)
    before = rows(spark, settings, stream.tables[0], "at", "note")
    assert len(before) > 2

    with pytest.raises(RivermarkError, match="rows come more than 0:01:00 after the first row of"):
        recompute_days(spark, settings, stream, FIRST)
    assert rows(spark, settings, stream.tables[0], "at", "note") == before


def test_windows_over_midnight_are_not_written_before_the_stream_does(
    spark: SparkSession, settings: Settings
) -> None:
    stream = windowed("test/over", TumblingWindow(7 * HOUR), margin=timedelta(0))
    admit(settings, at(-20), at(10))
    run(spark, settings, stream)

    with pytest.raises(PartitionStillOpen, match="a window or session of 2024-03-01"):
        rehearse(spark, settings, Order(stream=stream, first=FIRST, last=FIRST, run_id="too early"))
