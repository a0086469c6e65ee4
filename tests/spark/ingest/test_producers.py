"""Producers of one stream, one far ahead and one that falls silent: none closes or stalls it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Final

import pytest
from pyspark.sql import SparkSession

from rivermark import Topology
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.ingest_replay.replay import beside
from rivermark.backfill.ingest_replay.run import replay_ingest
from rivermark.ingest.watermark_recovery import admission_watermark
from rivermark.runtime.checkpoint.watermarks import last_reached
from rivermark.settings import Settings
from rivermark.sources import PerProducer
from rivermark.testing import assert_rows_equal
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.recomputing import recompute_days
from tests.spark.helpers.sensors import (
    FOLDER,
    MINUTE,
    TEN,
    by_value,
    reading,
    readings,
    rows,
    run,
    windows,
)
from tests.spark.helpers.stateful_streams import distinct
from tests.spark.process.rules import (
    JUMPS,
    SILENCES,
    jumps_by_hand,
    silences_by_hand,
    watched,
)

pytestmark = pytest.mark.spark

IDLE: Final = 4.5
"""Seconds; files come one second apart."""
PRODUCED: Final = readings(
    producers=r"^([^/]+)/",
    max_files=4,
    watermark=PerProducer(idle=timedelta(seconds=IDLE)),
)
DAY: Final = 24 * 60
HALF_A_SECOND: Final = 1 / 120
"""In minutes: no two events of a sensor have one time."""
THE_DAY: Final = date(2024, 3, 1)

Event = tuple[str, datetime, Decimal]


@dataclass
class Oracle:
    """What the rule says of files, one a second, from its words alone."""

    lateness: timedelta = MINUTE
    admitted: list[Event] = field(default_factory=list)
    late: list[Event] = field(default_factory=list)
    watermark: datetime | None = None
    second: int = -1
    heard: dict[str, int] = field(default_factory=dict)
    newest: dict[str, datetime] = field(default_factory=dict)

    def file(self, producer: str, events: Sequence[Event]) -> None:
        self.second += 1
        before = self.watermark
        for event in events:
            late = before is not None and event[1] <= before
            (self.late if late else self.admitted).append(event)
        times = [at for _, at, _ in events]
        self.newest[producer] = max([*times, self.newest.get(producer, times[0])])
        self.heard[producer] = self.second
        slowest = min(
            newest for name, newest in self.newest.items() if self.second - self.heard[name] <= IDLE
        )
        if self.second > IDLE:
            reached = slowest - self.lateness
            self.watermark = max(reached, before or reached)

    def windows(self) -> list[tuple[str, datetime, int]]:
        """The readings of each sensor and closed window of five minutes."""
        assert self.watermark is not None
        starts = [(s, at - (at - TEN) % (5 * MINUTE)) for s, at, _ in self.admitted]
        return [
            (sensor, start, count)
            for (sensor, start), count in sorted(Counter(starts).items())
            if start + 5 * MINUTE <= self.watermark
        ]


class Producers:
    """Lands files of producers, and tells the oracle of them."""

    def __init__(self, landing: Landing, seed: int) -> None:
        self.oracle = Oracle()
        self.left: dict[str, datetime | None] = {}
        """The watermark that each file left."""
        self.files: list[tuple[str, list[Event]]] = []
        self._landing = landing
        self._random = Random(seed)

    def put(self, producer: str, *minutes: float) -> None:
        """A file of readings at these minutes after ten."""
        lines: list[str] = []
        events: list[Event] = []
        for minute in minutes:
            sensor = f"s{self._random.randint(1, 3)}"
            degrees = self._random.choice((20.5, 60.5))
            note = f"{len(self.left)}.{len(lines)}"
            lines.append(reading(minute, sensor, degrees, note=note))
            events.append((sensor, TEN + minute * MINUTE, Decimal(f"{degrees}00")))
        name = f"{producer}/{len(self.left):02}.json"
        self._landing.put(f"{FOLDER}/{name}", *lines)
        self.files.append((producer, events))
        self.oracle.file(producer, events)
        self.left[name] = self.oracle.watermark

    def some(self, producer: str, first: float) -> None:
        """A file in disorder, of three minutes."""
        self.put(producer, *(first + n / 60 for n in self._random.sample(range(175), 6)))


@pytest.mark.long
def test_one_silent_and_one_far_ahead_neither_stall_nor_close_windows(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    settings = settings.model_copy(update={"files_per_trigger": 3})
    native = windows(PRODUCED)
    process = watched(reads=(PRODUCED,))
    once = replace(
        distinct(), reads=(PRODUCED,), writes=replace(PRODUCED.admitted, name="test/distinct")
    )
    later = windows(once, name="test/later_windows")
    later = replace(later, writes=replace(later.tables[0], name="test/later_windows"))
    streams = (PRODUCED, native, process, once, later)
    producers = Producers(landing, seed=7)
    for step in range(8):
        producers.some("slow", 3 * step)
        producers.some("fast", 600 + 3 * step)
        if step < 2:
            producers.some("silent", 3 * step + HALF_A_SECOND)
        if step == 4:
            run(spark, settings, *streams)
        if step == 6:
            producers.put("silent", 1 + HALF_A_SECOND, 3 * step + 1 + HALF_A_SECOND)
    for producer, minute in (("slow", 2 * DAY), ("fast", 3 * DAY), ("slow", 2 * DAY + 1)):
        producers.put(producer, minute)

    done = run(spark, settings, *streams)

    oracle = producers.oracle
    assert oracle.late
    assert oracle.watermark == TEN + 2 * DAY * MINUTE
    found = rows(spark, settings, PRODUCED.late, "sensor", "at", "temperature")
    assert_rows_equal(found, sorted(oracle.late, key=by_value))
    assert carried(spark, settings) == producers.left
    assert admission_watermark(settings.lake(), PRODUCED) == oracle.watermark
    for stream in (native, later):
        table = stream.tables[0]
        counted = rows(spark, settings, table, "sensor", "window_start", "readings")
        assert_rows_equal(counted, oracle.windows())
        assert last_reached(settings.lake(), stream) == oracle.watermark
    jumps, silences = (rows(spark, settings, table) for table in (JUMPS, SILENCES))
    passed = [event for event in oracle.admitted if event[1] <= oracle.watermark]
    assert_rows_equal(jumps, sorted(jumps_by_hand(passed), key=by_value))
    by_hand = silences_by_hand(oracle.admitted, oracle.watermark)
    assert_rows_equal(silences, sorted(by_hand, key=by_value))
    assert [done[stream.name].dropped_by_watermark for stream in streams] == [0] * len(streams)
    for stream in (native, process):
        assert recompute_days(spark, settings, stream, THE_DAY).same


@pytest.mark.long
def test_an_ingest_that_turns_to_it_goes_on_from_the_watermark_it_had(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    one = replace(PRODUCED, watermark=None)
    producers = Producers(landing, seed=9)
    producers.put("slow", 0, 2)
    run(spark, settings, one, windows(one))
    before = Oracle(admitted=producers.oracle.admitted, watermark=TEN + MINUTE)
    producers.oracle = before
    for minute in (1, 4, 6, 11):
        producers.put("slow", minute, minute + 1)
        producers.put("fast", 600 + minute)

    done = run(spark, settings, PRODUCED, windows(PRODUCED))

    oracle = producers.oracle
    assert [at for _, at, _ in oracle.late] == [TEN + MINUTE]
    assert oracle.watermark == TEN + 11 * MINUTE
    assert admission_watermark(settings.lake(), PRODUCED) == oracle.watermark
    counted = rows(spark, settings, windows().tables[0], "sensor", "window_start", "readings")
    assert_rows_equal(counted, oracle.windows())
    assert done["test/windows"].dropped_by_watermark == 0


@pytest.mark.long
def test_rows_that_executors_write_carry_the_same_watermark(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rivermark.ingest.admission.DRIVER_BYTES", 0)
    producers = Producers(landing, seed=8)
    for step in range(3):
        producers.some("slow", 3 * step)
        producers.some("fast", 600 + 3 * step)
    producers.put("slow", 1, 12)
    producers.put("slow", 13)

    run(spark, settings, PRODUCED)

    assert producers.oracle.late
    assert carried(spark, settings) == producers.left


@pytest.mark.long
def test_a_replay_of_its_raw_rows_decides_as_the_stream_did_or_by_another_lateness(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In several parts, each of which goes on with the progress of the one before.
    for limit in ("PART_BYTES", "TASKS_BYTES"):
        monkeypatch.setattr(f"rivermark.backfill.ingest_replay.replay.{limit}", 500)
    settings = settings.model_copy(update={"files_per_trigger": 3})
    producers = Producers(landing, seed=10)
    for step in range(8):
        producers.some("slow", 3 * step)
        producers.some("fast", 600 + 3 * step)
        if step == 4:
            run(spark, settings, PRODUCED)
        producers.put("slow", 3 * step - 0.505, 3 * step + 2.95)
    run(spark, settings, PRODUCED)
    producers.put("slow", 2 * DAY)
    producers.put("fast", 2 * DAY + 1)
    producers.put("slow", 20, 2 * DAY + 2)
    run(spark, settings, PRODUCED)
    context = BackfillContext(
        settings=settings, topology=Topology([PRODUCED]), spark=lambda: spark, run_id="again"
    )
    side = beside(PRODUCED)

    for day in (THE_DAY, THE_DAY + timedelta(days=2)):
        same = replay_ingest(context, PRODUCED.name, day, day)

        assert (same.turns, same.rows_changed) == ((), 0)
        batches = range(same.replayed.first_batch, same.replayed.last_batch + 1)
        assert (batches.start > 0) == (day > THE_DAY)
        for again, published in ((side.admitted, PRODUCED.admitted), (side.late, PRODUCED.late)):
            columns = ("_ingest_batch", "_file", "_row", "at", "_watermark_after")
            stream = rows(spark, settings, published, *columns)
            expected = [row for row in stream if row["_ingest_batch"] in batches]
            assert expected
            assert_rows_equal(rows(spark, settings, again, *columns), expected)

    longer = Oracle(lateness=4 * MINUTE)
    for producer, events in producers.files:
        longer.file(producer, events)
    fewer = len(producers.oracle.late) - len(longer.late)
    assert longer.late
    assert fewer > 0
    other = replay_ingest(context, PRODUCED.name, THE_DAY, THE_DAY, lateness_seconds=240)
    assert [(t.before, t.after, t.rows) for t in other.turns] == [("late", "admitted", fewer)]


def carried(spark: SparkSession, settings: Settings) -> dict[str, datetime | None]:
    """The watermark that the rows of each file carry, admitted and late ones."""
    names = ("_file", "_watermark_after")
    tables = (PRODUCED.admitted, PRODUCED.late)
    found = [row for table in tables for row in rows(spark, settings, table, *names)]
    pairs = {(file, at and at.replace(tzinfo=UTC)) for file, at in found}
    assert len(pairs) == len({file for file, _ in pairs})
    return dict(pairs)
