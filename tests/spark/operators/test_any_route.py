"""Every native operator, days cut at midnight: equal rows by every route.

A stream in batches of any cut, the same drained at once, its days computed again (one alone, all in
any order, a range), the refreshed form of it, file after file, and both with rows that came late
and were merged, are compared with plain Python.
RIVERMARK_ROUTE_ROUNDS is how many random worlds the long form tries.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from random import Random
from typing import Final, Literal

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark import Daily, Stream, Topology
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.late.run import merge_late
from rivermark.model.ingest import Ingest
from rivermark.operators import (
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    first_of_each,
    join_as_of,
    keep,
)
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.recomputing import recompute_days
from tests.spark.helpers.sensors import (
    FIRST_DAY,
    FOLDER,
    READINGS,
    TEN,
    admit,
    ordered,
    reading,
    readings,
    rows,
    run,
)
from tests.spark.helpers.windowed_streams import windowed

pytestmark = pytest.mark.spark

ROUNDS: Final = int(os.environ.get("RIVERMARK_ROUTE_ROUNDS", "2"))
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
DUMP: Final = readings(lateness=None)
DAYS: Final = [date(2024, 3, day) for day in range(1, 5)]
BEGIN: Final = datetime(2024, 3, 1, tzinfo=UTC)
END: Final = BEGIN + 20 * DAY
"""When a last reading closes all days."""
GAP, TUMBLING, SIZE, EVERY = 50 * MINUTE, 7 * HOUR, 3 * HOUR, 40 * MINUTE
WINDOWS: Final = (TumblingWindow(TUMBLING, HOUR), SlidingWindow(SIZE, EVERY), SessionWindow(GAP))
MARGIN: Final = 8 * HOUR

Event = tuple[datetime, str, str]
"""Its time, sensor and note."""
Cut = list[list[Event]]


def world(random: Random, largest: int) -> Cut:
    """Bursts of readings around midnights, some sent again, in commits of any size."""
    events: list[Event] = []
    for day in range(5):
        for burst in range(3):
            near = BEGIN + day * DAY + random.choice((0, 0, 12)) * HOUR
            at = near - random.randrange(240) * MINUTE
            for number in range(random.randrange(1, 9)):
                sensor = random.choice("ab")
                event = (at, sensor, f"{day}.{burst}.{number}")
                events.append(event)
                if random.random() < 0.3:
                    events.append(event)
                at += random.choice((1, 10, 50, 51, 200)) * MINUTE
    events = sorted(each for each in events if each[0] >= BEGIN)
    cut: Cut = []
    while events:
        size = random.randint(1, largest)
        commit, events = events[:size], events[size:]
        cut.append(commit)
    return [*cut, [(END, "end", "end")]]


def line(event: Event) -> str:
    at, sensor, note = event
    return reading((at - TEN) / MINUTE, sensor, note=note)


def windows_of(events: Iterable[Event]) -> Iterator[tuple[str, str, datetime, datetime, int]]:
    """What the windows must hold, by rule and sensor."""
    every = sorted(events)
    for sensor in {sensor for _, sensor, _ in every}:
        times = [at for at, of, _ in every if of == sensor]
        for rule, size, step, offset in (("0", TUMBLING, TUMBLING, HOUR), ("1", SIZE, EVERY, None)):
            epoch = datetime(1970, 1, 1, tzinfo=UTC) + (offset or timedelta(0))
            starts = set()
            for at in times:
                start = epoch + (at - epoch) // step * step
                while start + size > at:
                    starts.add(start)
                    start -= step
            for start in starts:
                count = sum(start <= at < start + size for at in times)
                yield rule, sensor, start, start + size, count
        session: list[datetime] = []
        for at in [*times, END]:
            if session and at - session[-1] > GAP:
                yield "2", sensor, session[0], session[-1] + GAP, len(session)
                session = []
            session.append(at)


def firsts_of(events: Iterable[Event]) -> Iterator[tuple[str, str]]:
    """Every note that does not end with 0 once, with its version."""
    for at, sensor, note in set(events):
        valid = [version for of, version, since in VERSIONS if of == sensor and since <= at]
        if not note.endswith(".0"):
            yield sensor, f"{note} {valid[-1] if valid else 'none'}"


@dataclass(frozen=True)
class Case:
    """A stream and its refreshed form, and what rows it must have of events (final ones)."""

    stream: Callable[..., Stream]
    expected: Callable[[list[Event]], Iterator[tuple[object, ...]]]
    columns: tuple[str, ...]


def of_windows(by: Literal["window_start", "window_end"]) -> Case:
    return Case(
        lambda source, name, **changes: windowed(
            name, *WINDOWS, by=by, source=source, margin=MARGIN, **changes
        ),
        windows_of,
        ("rule", "sensor", "window_start", "window_end", "readings"),
    )


VERSIONS: Final = [("a", "old", BEGIN - DAY), ("a", "new", BEGIN + DAY), ("b", "only", BEGIN + DAY)]
VERSION: Final = (
    "sensor string, version string, since timestamp, _ingest_batch long, _file string, _row long"
)


def once(source: Ingest, name: str, kind: Literal["append", "refresh"] = "append") -> Stream:
    """Each reading once, if its note does not end with 0, with the version of its sensor."""
    first = first_of_each("note", event_time="at", within=MINUTE)
    table = replace(source.admitted, name=name, days=Daily("at", FIRST_DAY))

    def build(readings: DataFrame) -> DataFrame:
        landed = [(*version, 0, "versions.json", row) for row, version in enumerate(VERSIONS)]
        versions = readings.sparkSession.createDataFrame(landed, VERSION)
        kept = readings.transform(first).transform(
            keep(~F.col("note").endswith(".0"), event_time="at")
        )
        joined = join_as_of(kept, versions, ("sensor",), at="at", since="since")
        version = F.coalesce("version", F.lit("none"))
        return joined.withColumn("note", F.concat_ws(" ", "note", version))

    return Stream(
        reads=(source,),
        build=build,
        writes=table,
        group="test",
        kind=kind,
        volume="events",
        margin=MINUTE,
    )


CASES: Final = {
    "windows by their start": of_windows("window_start"),
    "windows by their end": of_windows("window_end"),
    "repeats, a filter and versions": Case(once, firsts_of, ("sensor", "note")),
}


def published_rows(
    spark: SparkSession, settings: Settings, case: Case, stream: Stream
) -> list[tuple[object, ...]]:
    """The rows of a stream before the last reading, times in UTC."""
    utc = [
        tuple(v.astimezone(UTC) if isinstance(v, datetime) else v for v in row)
        for row in rows(spark, settings, stream.tables[0], *case.columns)
        if row["sensor"] != "end"
    ]
    return ordered(utc)


def check(
    spark: SparkSession, settings: Settings, case: Case, seed: int, *, refreshed: bool
) -> None:
    """Compare every route over one world."""
    random = Random(seed)
    cut = world(random, 12 if refreshed else 60)
    events = [event for commit in cut for event in commit]
    final = [event for event in events if event[0] < END]
    expected = ordered(case.expected(final))

    published = partial(published_rows, spark, settings, case)
    cut_live = case.stream(READINGS, "test/cut")
    drained = case.stream(READINGS, "test/drained") if refreshed else cut_live
    fresh = case.stream(DUMP, "test/fresh", kind="refresh")
    for number, commit in enumerate(cut):
        lines = [line(event) for event in commit]
        admit(settings, *random.sample(lines, len(lines)))
        if refreshed and (number % 4 == 3 or number == len(cut) - 1):
            run(spark, settings, fresh)
    run(spark, settings.model_copy(update={"files_per_trigger": 1}), cut_live)
    assert published(cut_live) == expected, f"live, seed {seed}"
    if refreshed:
        run(spark, settings, drained)
    assert published(drained) == expected, f"drained, seed {seed}"
    streams = [drained]
    if refreshed:
        assert published(fresh) == expected, f"refreshed, seed {seed}"
        streams.append(fresh)
    for stream in streams:
        spans = [(day, day) for day in random.sample(DAYS, len(DAYS) if refreshed else 1)]
        for first, last in (*spans, (DAYS[0], DAYS[-1])):
            done = recompute_days(spark, settings, stream, first, last)
            what = f"{stream.name} {first} to {last}, seed {seed}"
            difference = done.tables[stream.name].difference
            assert (difference.added, difference.removed) == (0, 0), what
            assert published(stream) == expected, what


def check_merged(
    spark: SparkSession, settings: Settings, landing: Landing, case: Case, seed: int
) -> None:
    """Compare streams over one world of which some rows came after all days were closed."""
    random = Random(seed)
    *commits, last = world(random, 60)
    events = [event for commit in commits for event in commit]
    is_late = [random.random() < 0.2 for _ in events]
    expected = ordered(case.expected(events))
    streams = [case.stream(READINGS, "test/live")]
    streams.append(case.stream(READINGS, "test/fresh", kind="refresh"))
    topology = Topology([READINGS, *streams])
    for name, late in (("1.on_time", False), ("3.late", True)):
        sent = [line(e) for e, left_out in zip(events, is_late, strict=True) if left_out == late]
        landing.put(f"{FOLDER}/{name}.json", *sent)
        if not late:
            landing.put(f"{FOLDER}/2.end.json", *map(line, last))
            run(spark, settings, *topology.streams)
    run(spark, settings, *topology.streams)
    before = [published_rows(spark, settings, case, stream) for stream in streams]
    assert expected not in before, f"late rows change nothing, seed {seed}"

    context = BackfillContext(
        settings=settings, topology=topology, spark=lambda: spark, run_id="merge"
    )
    report = merge_late(context, [READINGS])
    run(spark, settings, streams[1])

    assert report.rows == sum(is_late)
    assert (report.downstream.blocked, report.downstream.pending) == ({}, {})
    for stream in streams:
        what = f"{stream.name}, late rows merged, seed {seed}"
        assert published_rows(spark, settings, case, stream) == expected, what
        done = recompute_days(spark, settings, stream, DAYS[0], DAYS[-1])
        assert done.tables[stream.name].difference.same, what


def test_windows_are_the_same_by_every_route(spark: SparkSession, settings: Settings) -> None:
    check(spark, settings, CASES["windows by their start"], 1, refreshed=False)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("name", CASES)
def test_every_operator_is_the_same_by_every_route(
    spark: SparkSession, settings: Settings, name: str, seed: int
) -> None:
    check(spark, settings, CASES[name], seed, refreshed=True)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("name", CASES)
def test_every_operator_is_the_same_where_late_rows_are_merged(
    spark: SparkSession, settings: Settings, landing: Landing, name: str, seed: int
) -> None:
    check_merged(spark, settings, landing, CASES[name], seed)
