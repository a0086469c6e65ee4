"""A month of nights: feeds and streams that rest, late rows, upkeep, recomputed days, restarts.

Each night is a run of its own, some of them end as by a kill, and upkeep takes it for a day later
than the one before, so that what lies more than a week back is deleted. The oracle is plain Python
over all that was sent. RIVERMARK_STORY_NIGHTS is how many nights there are, RIVERMARK_FUZZ_SEED
chooses what happens in them.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from rivermark.backfill.context import BackfillContext
from rivermark.backfill.late.days import late_days, live_ingests
from rivermark.backfill.late.run import merge_late
from rivermark.backfill.maintenance import upkeep
from rivermark.backfill.verify import closed_days
from rivermark.model.stream import AnyStream, Stream
from rivermark.model.topology import Topology
from rivermark.settings import Settings
from tests.spark.helpers.crashes import forget_last_commit
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.recomputing import recompute_days
from tests.spark.helpers.sensors import FOLDER, READINGS, TEN, busiest, reading, rows, run, windows
from tests.spark.helpers.stateful_streams import APART, ECHOES, answers

pytestmark = [pytest.mark.spark, pytest.mark.long]

SEED: Final = int(os.environ.get("RIVERMARK_FUZZ_SEED", "15"))
NIGHTS: Final = int(os.environ.get("RIVERMARK_STORY_NIGHTS", "30"))
READINGS_A_DAY: Final = 40
FILES_A_DAY: Final = 2
FIVE: Final = timedelta(minutes=5)
MIDNIGHT: Final = TEN.replace(hour=0)
ECHOES_REST: Final = range(6, 8)
QUIET: Final = range(9, 25)
"""Nights before which nothing came, and in which nothing runs but upkeep and recomputes."""
KILLED: Final = 0.3
"""Share of the nights in which a stream ends before its checkpoint knows its last batch."""
STREAMS_REST: Final = range(3, 27)
"""For longer than upkeep keeps versions and entries of logs."""

WINDOWS: Final = windows()
BUSIEST: Final = busiest(WINDOWS)
ANSWERS: Final = answers()
ALWAYS: Final[tuple[AnyStream, ...]] = (READINGS, ECHOES, WINDOWS)
TOPOLOGY: Final = Topology([*ALWAYS, BUSIEST, ANSWERS])


@dataclass(frozen=True)
class Event:
    """A reading or an echo."""

    at: datetime
    sensor: str
    note: str | None
    celsius: Decimal

    def line(self) -> str:
        """Its JSON line."""
        at = self.at.isoformat().replace("+00:00", "Z")
        return reading(0, self.sensor, float(self.celsius), at=at, note=self.note)


@dataclass
class Month:
    """What was sent, and what is still on its way."""

    landing: Landing
    random: Random = field(default_factory=lambda: Random(SEED))
    readings: list[Event] = field(default_factory=list)
    echoes: list[Event] = field(default_factory=list)
    late: dict[str, list[Event]] = field(default_factory=lambda: defaultdict(list))

    def send(self, day: int) -> None:
        """The files of a day, with the rows of days before that are late."""
        start = MIDNIGHT + timedelta(days=day)
        moments = [start + self.random.random() * timedelta(days=1) for _ in range(READINGS_A_DAY)]
        readings = [self._event(at, self._note(day, n)) for n, at in enumerate(moments)]
        echoes = [self._echo(r, start) for r in readings if self.random.random() < 0.7]
        self._land(FOLDER, day, readings)
        self.readings += readings
        if day not in ECHOES_REST:
            self._land("echoes", day, echoes)
            self.echoes += echoes

    def close(self) -> None:
        """Two rows of each feed long after the month, so that all its days are closed.

        The second one closes the window of the first, whose result closes those of other windows.
        """
        for folder in (FOLDER, "echoes"):
            self.landing.put(f"{folder}/end.late.json", *(e.line() for e in self.late[folder]))
            for days in (2, 4):
                # With a key: a join drops rows without one before they move its watermark.
                after = self._event(MIDNIGHT + timedelta(days=NIGHTS + days), "end")
                self.landing.put(f"{folder}/end.{days}.json", after.line())

    def _event(self, at: datetime, note: str | None) -> Event:
        celsius = Decimal(self.random.randint(0, 40_000)) / 1000
        return Event(at, f"s{self.random.randint(1, 3)}", note, celsius)

    def _echo(self, of: Event, start: datetime) -> Event:
        """Mostly near enough; on the same day."""
        at = of.at + self.random.uniform(-1.1, 1.1) * APART
        last = start + timedelta(days=1, microseconds=-1)
        return self._event(min(max(at, start), last), of.note)

    def _note(self, day: int, number: int) -> str | None:
        return None if self.random.random() < 0.2 else f"{day}.{number}"

    def _land(self, folder: str, day: int, events: Sequence[Event]) -> None:
        sent: list[Event] = []
        late: list[Event] = []
        for event in sorted(events, key=lambda e: e.at):
            is_late = day % 3 == 1 and self.random.random() < 0.1
            (late if is_late else sent).append(event)
        waiting, self.late[folder] = self.late[folder], late
        size = len(sent) // FILES_A_DAY + 1
        for number in range(FILES_A_DAY):
            part = sent[number * size : (number + 1) * size]
            self.landing.put(f"{folder}/{day:02}.{number}.json", *(e.line() for e in part))
        if waiting:
            self.landing.put(f"{folder}/{day:02}.late.json", *(e.line() for e in waiting))


@pytest.mark.timeout(900)
def test_the_tables_of_a_month_are_those_of_the_oracle(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    month, random = Month(landing), Random(SEED + 1)
    began = datetime.now(UTC)
    for night in range(NIGHTS):
        if night not in QUIET:
            month.send(night)
            streams = ALWAYS if night in STREAMS_REST else TOPOLOGY.streams
            cut = settings.model_copy(update={"files_per_trigger": random.choice((1, 1000))})
            run(spark, cut, *streams, run_id=f"night-{night}")
            if random.random() < KILLED:
                forget_last_commit(settings, random.choice(streams))
            merge(spark, settings)
        if night % 3 == 2:
            day = random.choice(closed_days(settings.lake(), WINDOWS))
            recompute(spark, settings, WINDOWS, day)
        now = began + timedelta(days=night + 1)
        kept = upkeep(settings, TOPOLOGY, run_id=f"upkeep-{night}", now=now)
        assert {t.name for stream in TOPOLOGY.streams for t in stream.tables} <= {
            k.table for k in kept
        }
        assert [(k.table, k.failed) for k in kept if k.failed] == []
    month.close()
    run(spark, settings, *TOPOLOGY.streams, run_id="end")
    merge(spark, settings)

    assert not [d for i in live_ingests(TOPOLOGY) for d in late_days(settings, i) if d.closed]
    end = MIDNIGHT + timedelta(days=NIGHTS)
    expected = expected_windows(month.readings)
    assert before(spark, settings, WINDOWS, end) == sorted(expected)
    assert before(spark, settings, BUSIEST, end) == sorted(expected_busiest(expected))
    assert before(spark, settings, ANSWERS, end) == sorted(
        expected_answers(month.readings, month.echoes), key=repr
    )
    for stream in (WINDOWS, BUSIEST, ANSWERS):
        recompute(spark, settings, stream, MIDNIGHT.date(), end.date() - timedelta(days=1))


def merge(spark: SparkSession, settings: Settings) -> None:
    """The nightly merge of late rows."""
    context = BackfillContext(
        settings=settings, topology=TOPOLOGY, spark=lambda: spark, run_id="merge"
    )
    report = merge_late(context, live_ingests(TOPOLOGY))
    assert not report.downstream.blocked


def recompute(
    spark: SparkSession, settings: Settings, stream: Stream, first: date, last: date | None = None
) -> None:
    """Replace days, of which nothing differs: stream and recompute agree."""
    done = recompute_days(spark, settings, stream, first, last)
    for name, outcome in done.tables.items():
        assert outcome.difference.same, (name, first, outcome.difference.sentence())


def before(
    spark: SparkSession, settings: Settings, stream: AnyStream, end: datetime
) -> list[tuple[Any, ...]]:
    """The rows of a stream's table whose day is of the month."""
    assert isinstance(stream, Stream)
    table = stream.tables[0]
    assert table.days is not None
    column, until = table.days.column, end.replace(tzinfo=None)
    found = [tuple(row) for row in rows(spark, settings, table) if row[column] < until]
    return sorted(found, key=repr) if stream is ANSWERS else sorted(found)


def expected_windows(readings: Sequence[Event]) -> list[tuple[Any, ...]]:
    """Readings and their sum for each sensor and five minutes."""
    sums: dict[tuple[str, datetime], list[Decimal]] = defaultdict(list)
    for event in readings:
        start = MIDNIGHT + (event.at - MIDNIGHT) // FIVE * FIVE
        sums[event.sensor, start.replace(tzinfo=None)].append(event.celsius)
    return [(s, start, start + FIVE, len(c), sum(c)) for (s, start), c in sums.items()]


def expected_busiest(per_window: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The sensor with the most readings of each window, of equals the last by name."""
    best: dict[datetime, tuple[int, str]] = {}
    for sensor, _, end, count, _ in per_window:
        best[end] = max(best.get(end, (0, "")), (count, sensor))
    last = (MIDNIGHT + timedelta(days=NIGHTS)).replace(tzinfo=None)
    return [(end, *top) for end, top in best.items() if end < last]


def expected_answers(readings: Sequence[Event], echoes: Sequence[Event]) -> list[tuple[Any, ...]]:
    """Each reading once for each echo near it, or once without."""
    near = defaultdict(list)
    for echo in echoes:
        near[echo.note].append(echo.at)
    answered = []
    for r in readings:
        pairs = sum(abs(at - r.at) <= APART for at in near[r.note]) if r.note else 0
        answered += [(r.sensor, r.at.replace(tzinfo=None), r.note, pairs > 0)] * max(pairs, 1)
    return answered
