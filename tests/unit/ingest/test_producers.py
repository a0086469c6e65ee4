"""A watermark per producer: the slowest counts, silent ones do not, and no cut changes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermark import DeclarationError
from rivermark.cli.status import producer_line
from rivermark.ingest.batch.base import SplitStatistics
from rivermark.ingest.decision import evaluate_splits
from rivermark.ingest.plan import BatchPlanner, planned_names
from rivermark.ingest.producers import REMEMBERED, Producer, Producers
from rivermark.ingest.watermark import Bounds, Progress
from rivermark.ingest.watermark_recovery import admission_watermark
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import rows_of
from rivermark.model.sink import Origin
from rivermark.monitor.watermarks import producers_of
from rivermark.sources import FileSource, KafkaSource, PerProducer
from tests.unit.model.declared import ingest

TEN = datetime(2024, 3, 1, 10, tzinfo=UTC)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
RULE = PerProducer(idle=3 * SECOND, drift=10 * MINUTE)
BY_FOLDER = FileSource(folder="taxi", producers=r"^([^/]+)/")
RIDES = ingest(source=BY_FOLDER, watermark=RULE, lateness=MINUTE)
TOPIC = replace(RIDES, source=KafkaSource(topics="rides"))


def at(minutes: float) -> datetime:
    return TEN + minutes * MINUTE


@dataclass(frozen=True)
class File:
    """A split with the minutes of its oldest and newest event, read `second` after ten.

    By its `mark` its producer is complete up to that minute.
    """

    name: str
    second: int
    oldest: float | None = None
    newest: float | None = None
    batch: int = 0
    mark: float | None = None

    @property
    def modified_at(self) -> datetime:
        return TEN + self.second * SECOND


def evaluated(
    files: Sequence[File], progress: Progress | None = None, rides: Any = RIDES
) -> tuple[dict[str, Bounds], Progress]:
    statistics = {
        f.name: SplitStatistics(
            rows=1,
            oldest=at(f.oldest or f.newest),
            newest=at(f.newest),
            mark=None if f.mark is None else at(f.mark),
        )
        for f in files
        if f.newest is not None
    }
    return evaluate_splits(files, statistics, cast(Any, None), progress or Progress(), rides)


def through_json(progress: Progress) -> Progress:
    """As the next batch gets it back from the commit."""
    return Progress.from_json(progress.to_json())


def test_the_slowest_producer_counts_and_one_far_ahead_makes_nothing_late() -> None:
    bounds, progress = evaluated(
        [
            File("a/1", 0, newest=0),
            File("b/1", 1, newest=600),
            File("a/2", 4, newest=2),
            File("b/2", 4, newest=601),
            File("a/3", 5, newest=3),
        ]
    )

    assert [b.watermark for b in bounds.values()] == [None, None, None, at(1), at(1)]
    assert [b.after for b in bounds.values()] == [None, None, at(1), at(1), at(2)]
    assert progress.newest == at(601)
    assert progress.watermark(MINUTE) == at(2)


def test_a_producer_that_is_silent_for_too_long_is_waited_for_no_longer() -> None:
    files = [File("a/1", 0, newest=0), File("b/1", 1, newest=0)]
    files += [File(f"a/{n}", n, newest=n) for n in range(2, 7)]
    bounds, progress = evaluated(files)
    assert bounds["a/4"].after == at(-1)
    assert bounds["a/5"].after == at(4)

    back, progress = evaluated([File("b/7", 7, oldest=4, newest=8)], progress)
    assert back["b/7"] == Bounds(watermark=at(5), after=at(5))
    # It counts again, and never sets the watermark back.
    slow, progress = evaluated([File("b/8", 8, newest=3)], progress)
    assert slow["b/8"].after == at(5)
    assert evaluated([File("a/9", 9, newest=90)], progress)[1].watermark(MINUTE) == at(7)


def test_no_watermark_moves_until_each_producer_had_the_time_to_be_heard() -> None:
    files = [File("a/1", 0, newest=60), File("a/2", 2, newest=61), File("b/1", 3, newest=0)]
    bounds, progress = evaluated(files)
    assert {b.watermark for b in bounds.values()} == {None}
    assert evaluated([File("b/2", 4, newest=1)], progress)[1].watermark(MINUTE) == at(0)


def test_a_stream_that_had_one_watermark_never_goes_behind_it() -> None:
    before = Progress(at(30))
    bounds, progress = evaluated([File("a/1", 0, newest=10), File("a/2", 5, newest=11)], before)
    assert [b.watermark for b in bounds.values()] == [at(29), at(29)]
    assert progress.watermark(MINUTE) == at(29)


def test_partitions_of_a_round_are_side_by_side_and_empty_ones_hold_back() -> None:
    first = [
        File("rides/0/000-010", 0, newest=9),
        File("rides/1/000-000", 0),
        File("rides~1/2/000-010", 0, newest=5),
    ]
    second = [File("rides/0/010-020", 2, oldest=1, newest=30, batch=1)]
    third = [
        File("rides/0/020-030", 5, newest=40, batch=2),
        File("rides/2/010-020", 5, oldest=1, newest=20, batch=2),
    ]
    bounds, progress = evaluated([*first, *second, *third], rides=TOPIC)

    assert {b.watermark for b in bounds.values()} == {None}
    assert progress.producers is not None
    assert [*progress.producers.known] == ["rides/0", "rides/1", "rides/2"]
    # The partition that never had a message is idle by now.
    assert bounds["rides/2/010-020"].after == bounds["rides/0/020-030"].after == at(19)


def test_what_runs_ahead_does_so_of_its_own_producer() -> None:
    careful = replace(RIDES, contract=replace(RIDES.contract, max_jump=timedelta(hours=1)))
    files = [File("a/1", 0, newest=0), File("b/1", 0, newest=600), File("b/2", 1, newest=601)]
    bounds, progress = evaluated(files, rides=careful)
    assert bounds["b/2"].ceiling == at(660)
    doubted, _ = evaluated([File("c/1", 2, newest=0), File("a/2", 2, newest=1)], progress, careful)
    assert doubted["c/1"].ceiling is None
    assert doubted["a/2"].ceiling == at(60)


def test_a_mark_moves_the_watermark_of_its_producer_alone_and_never_back() -> None:
    bounds, progress = evaluated(
        [
            File("a/1", 0, newest=0),
            File("a/2", 2, newest=0),
            File("b/1", 4, newest=0, mark=10),
            File("a/3", 4, newest=2, mark=8),
            File("a/4", 5, newest=3, mark=5),
        ]
    )
    assert [b.after for b in bounds.values()] == [None, None, at(-1), at(8), at(8)]
    # Its events overtake what it said, and what it says overtakes them.
    after = through_json(progress)
    files = [File("a/5", 6, newest=30), File("b/2", 6, newest=11), File("b/3", 6, newest=12)]
    bounds, after = evaluated(files, after)
    assert [b.after for b in bounds.values()] == [at(10), at(10), at(11)]
    assert evaluated([File("b/4", 7, newest=12, mark=12)], after)[1].watermark(MINUTE) == at(12)


def test_a_mark_of_a_partition_counts_from_the_next_round_on() -> None:
    first = [File("rides/0/000-010", 0, newest=9), File("rides/1/000-010", 0, newest=9)]
    second = [
        File("rides/0/010-020", 4, newest=20, mark=15, batch=1),
        # Not late by the mark of the same round, not even by its own.
        File("rides/1/010-020", 4, oldest=1, newest=9, mark=12, batch=1),
    ]
    third = [File("rides~1/1/000-010", 5, oldest=11, newest=12, batch=2)]
    bounds, progress = evaluated([*first, *second, *third], rides=TOPIC)
    assert {bounds[file.name].watermark for file in second} == {None}
    assert bounds["rides/1/010-020"].after == bounds["rides~1/1/000-010"].watermark == at(12)
    # A topic that was made again goes on where its partition was.
    assert progress.watermark(MINUTE) == at(12)


class OneWildRow:
    """The rows of a split: what is up to a ceiling in it."""

    def newest_until(self, split: str, ceiling: datetime) -> datetime:
        return at(1)

    def mark_until(self, split: str, ceiling: datetime) -> datetime:
        return at(0.5)


def test_a_row_that_runs_ahead_is_quarantined_and_its_mark_with_it() -> None:
    careful = replace(RIDES, contract=replace(RIDES.contract, max_jump=timedelta(hours=1)))
    _, progress = evaluated([File("a/1", 0, newest=0), File("a/2", 4, newest=0)], rides=careful)
    wild = File("a/3", 5, oldest=0.2, newest=6000, mark=6000)
    statistics = {wild.name: SplitStatistics(rows=2, oldest=at(0), newest=at(6000), mark=at(6000))}
    _, progress = evaluate_splits([wild], statistics, cast(Any, OneWildRow()), progress, careful)
    assert progress.watermark(MINUTE) == at(0.5)


FILES = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 4),
        st.integers(0, 60),
        st.none() | st.integers(0, 60),
    ),
    max_size=25,
)
Drawn = tuple[str, int, int, int | None]


def in_order(drawn: Sequence[Drawn]) -> list[File]:
    files, second = [], 0
    for number, (producer, pause, minute, mark) in enumerate(drawn):
        second += pause
        files.append(File(f"{producer}/{number}", second, newest=minute, mark=mark))
    return files


def reached_by(files: Sequence[File]) -> datetime:
    """How far the producer of these files is complete."""
    newest = max(at(f.newest or 0) for f in files) - MINUTE
    return max([newest, *(at(f.mark) for f in files if f.mark is not None)])


def by_the_rule(files: Sequence[File]) -> list[datetime | None]:
    """The watermark after each file, from the words of the rule alone."""
    watermarks: list[datetime | None] = []
    for n, last in enumerate(files):
        past, watermark = files[: n + 1], watermarks[-1] if watermarks else None
        active = {f.name[0] for f in past if last.second - f.second <= RULE.idle.total_seconds()}
        reached = [reached_by([f for f in past if f.name[0] == name]) for name in active]
        if last.second - files[0].second > RULE.idle.total_seconds():
            moments = [min(reached), *([watermark] if watermark else [])]
            watermark = max(moments)
        watermarks.append(watermark)
    return watermarks


@given(FILES, st.sets(st.integers(0, 24)))
def test_however_files_are_cut_into_batches_the_watermarks_are_those_of_the_rule(
    drawn: list[Drawn], cuts: set[int]
) -> None:
    files = in_order(drawn)
    bounds: dict[str, Bounds] = {}
    progress, first = Progress(), 0
    for end in sorted({*cuts, len(files)}):
        own, progress = evaluated(files[first:end], progress)
        bounds |= own
        progress, first = through_json(progress), max(first, end)

    after = by_the_rule(files)
    assert [bounds[f.name].after for f in files] == after
    assert [bounds[f.name].watermark for f in files] == [None, *after][: len(files)]
    assert all(Bounds.from_json(b.to_json()) == b for b in bounds.values())


def known(**minutes: float) -> Producers:
    heard = TEN + 10 * SECOND
    return Producers(TEN, heard, at(0), {n: Producer(heard, at(m)) for n, m in minutes.items()})


def test_the_fastest_is_held_back_while_a_slower_one_is_worth_waiting_for() -> None:
    producers = known(a=0, b=10, c=10.5)
    soon, later = TEN + 12 * SECOND, TEN + 14 * SECOND

    assert producers.ahead({"b", "c"}, soon, RULE) == {"c"}
    # Nothing of the slower ones waits, and they have been silent: whatever there is, is read.
    assert producers.ahead((), later, RULE) == frozenset()
    assert producers.ahead({"c"}, later, RULE) == frozenset()
    assert producers.ahead({"a", "c"}, later, RULE) == {"c"}
    assert producers.ahead({"a"}, soon, replace(RULE, drift=None)) == frozenset()


def test_the_skew_is_that_of_producers_that_count() -> None:
    producers = known(a=0, b=10)
    silent = replace(producers, known={**producers.known, "c": Producer(TEN, at(-60))})
    assert silent.skew(RULE.idle) == {"a": 0 * MINUTE, "b": 10 * MINUTE}


def test_files_of_a_producer_that_runs_ahead_wait_in_a_live_run(tmp_path: Path) -> None:
    lake, landing = Lake(str(tmp_path / "lake")), tmp_path / "landing"
    source = replace(BY_FOLDER, settle=timedelta(0))
    patient = replace(RULE, idle=60 * MINUTE)
    rides = replace(RIDES, source=source, watermark=patient)
    planner = BatchPlanner(lake, str(landing), rides, "run")
    for name in ("a/1.json", "b/1.json", "b/2.json"):
        path = landing / "taxi" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")

    now = datetime.now(UTC)
    known = {name: Producer(now, at(minute)) for name, minute in (("a", 0), ("b", 11))}
    ahead = Progress(producers=Producers(now, now, None, known))
    poll = planner.poll(most=1, progress=ahead)
    # No batch before them holds its files, so that the stream does not stand still.
    assert (poll.planned, poll.held, poll.aligned) == (1, 0, frozenset({"b"}))
    assert planned_names(lake, RIDES) == ["a/1.json"]

    # A bounded run knows no event times yet.
    assert planner.poll().planned == 2


def test_how_far_producers_have_come_is_shown_without_spark(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    create_table(lake, RIDES.raw)
    files = [File("a/1", 0, newest=0), File("b/1", 0, newest=9), File("c/1", 3), File("b/2", 4)]
    progress = evaluated([*files, File("a/2", 4, newest=1), File("b/3", 4, newest=9)])[1]
    writer = TableWriter(lake, RIDES.raw, Origin(RIDES.name, 0, TEN, "run"))
    writer.append_once(rows_of(RIDES.raw, []), 0, metadata={"clock": progress.to_json()})

    shown = producers_of(lake, RIDES)
    assert [(p.name, p.newest, p.ahead_seconds) for p in shown] == [
        ("a", at(1), 0.0),
        ("b", at(9), 480.0),
        ("c", None, None),
    ]
    assert [producer_line(p).split(": ")[-1] for p in shown] == [
        "the slowest",
        "8 min ahead",
        "c brought no row yet",
    ]
    # One that never brought a row is waited for until it is idle, and then no longer.
    assert admission_watermark(lake, RIDES) is None
    assert evaluated([File("a/3", 7, newest=1), File("b/4", 7, newest=9)], progress)[1].watermark(
        MINUTE
    ) == at(0)


def test_of_many_idle_producers_those_are_remembered_that_were_heard_last() -> None:
    progress = Progress()
    for n in range(REMEMBERED + 10):
        progress = evaluated([File(f"{n:04}/1", n, newest=n)], progress)[1]
    assert progress.producers is not None
    assert [*progress.producers.known] == [f"{n:04}" for n in range(10, REMEMBERED + 10)]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(DeclarationError, match="does not tell producers apart"):
        ingest(watermark=RULE, lateness=MINUTE)
    with pytest.raises(DeclarationError, match="its rows cannot be late"):
        ingest(source=BY_FOLDER, watermark=RULE, lateness=None)
    with pytest.raises(DeclarationError, match="per producer: `idle` must be above zero, got 0:"):
        PerProducer(idle=timedelta(0))
    with pytest.raises(DeclarationError, match="per producer: `drift` must be above zero, got -1 "):
        PerProducer(idle=SECOND, drift=-SECOND)
    for mark in ("at", "id", "until"):
        with pytest.raises(DeclarationError, match=rf"the mark '{mark}' of its .* \(at\)"):
            replace(RIDES, watermark=replace(RULE, mark=mark))
    for pattern in ("[", "", "no group", "(two)(groups)"):
        with pytest.raises(DeclarationError, match="producers"):
            FileSource(folder="taxi", producers=pattern)


def test_files_in_which_no_producer_is_found_have_one_together() -> None:
    assert BY_FOLDER.producer("truck_1/2024/x.json") == "truck_1"
    assert BY_FOLDER.producer("x.json") == "taxi"
