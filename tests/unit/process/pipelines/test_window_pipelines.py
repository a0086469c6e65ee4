"""What windows are for: extremes two ways, medians, rewards, sessions; and a clock of one's own."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import pairwise
from statistics import median

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rivermark.process import Context, KeyedProcess, ListState, SideOutput, ValueState
from rivermark.process.windows import (
    AnyOf,
    AtEnd,
    EveryCount,
    Sessions,
    Sliding,
    Tumbling,
    WindowAggregate,
    WindowContext,
    WindowProcess,
)
from rivermark.testing import ProcessHarness, assert_rows_equal, split_invariant
from tests.unit.process.pipelines.sensors import Reading, reading, readings
from tests.unit.process.pipelines.test_level_ups import ALICE, BOB, LevelUp, LevelUps, Pops, pops
from tests.unit.process.pipelines.times import MINUTE, NOON, SECOND, accepted

FIVE_SECONDS = timedelta(seconds=5)


class Extremes(msgspec.Struct, frozen=True):
    id: str
    end: int
    least: float
    greatest: float


class ExtremesByFold(WindowAggregate[Reading, tuple[float, float], Extremes]):
    """Keeps two numbers a window."""

    key = "id"
    time = "timestamp"
    windows = Tumbling(FIVE_SECONDS)
    late = None

    def update(self, value: tuple[float, float] | None, event: Reading) -> tuple[float, float]:
        least, greatest = value or (event.temperature, event.temperature)
        return min(least, event.temperature), max(greatest, event.temperature)

    def on_window(self, value: tuple[float, float], ctx: WindowContext[Extremes]) -> None:
        ctx.emit(Extremes(ctx.key, ctx.window.end, *value))


class ExtremesByList(WindowProcess[Reading, Extremes]):
    """Keeps all readings of a window."""

    key = "id"
    time = "timestamp"
    windows = Tumbling(FIVE_SECONDS)
    late = None

    def on_window(self, events: list[Reading], ctx: WindowContext[Extremes]) -> None:
        degrees = [each.temperature for each in events]
        ctx.emit(Extremes(ctx.key, ctx.window.end, min(degrees), max(degrees)))


class MiddleReadings(WindowProcess[Reading, Extremes]):
    """The median needs all readings; here as the least and the greatest of the middle."""

    key = "id"
    time = "timestamp"
    windows = Tumbling(timedelta(seconds=15))
    late = None

    def on_window(self, events: list[Reading], ctx: WindowContext[Extremes]) -> None:
        middle = median(each.temperature for each in events)
        ctx.emit(Extremes(ctx.key, ctx.window.end, middle, middle))


def test_a_window_of_negative_values_has_a_negative_peak_and_silence_has_none() -> None:
    harness = ProcessHarness(ExtremesByFold())
    harness.feed([reading(1, -5), reading(2, -3), reading(21, -7)])

    assert harness.end_of_input() == [
        Extremes("sensor_1", 5 * SECOND, -5, -3),
        Extremes("sensor_1", 25 * SECOND, -7, -7),
    ]


@given(readings(last_second=30, coldest=-40, hottest=40))
def test_a_fold_and_a_whole_window_agree_however_arrivals_are_cut(story: list[Reading]) -> None:
    delay = timedelta(seconds=31)
    folded = split_invariant(ExtremesByFold, story, delay=delay)
    listed = split_invariant(ExtremesByList, story, delay=delay)
    middle = split_invariant(MiddleReadings, story, delay=delay)

    assert_rows_equal(folded.outputs.main, listed.outputs.main)
    assert {(e.id, e.end): (e.least, e.greatest) for e in folded.outputs.main} == {
        key: (min(degrees), max(degrees)) for key, degrees in grouped(story, 5).items()
    }
    assert {(e.id, e.end): e.least for e in middle.outputs.main} == {
        key: median(degrees) for key, degrees in grouped(story, 15).items()
    }
    assert folded.state is listed.state is middle.state is None


def grouped(story: list[Reading], seconds: int) -> dict[tuple[str, int], list[float]]:
    size = seconds * SECOND
    found: dict[tuple[str, int], list[float]] = {}
    for each in story:
        end = (each.timestamp // size + 1) * size
        found.setdefault((each.id, end), []).append(each.temperature)
    return found


class SlidingLevelUps(LevelUps):
    """P26 with minutes that begin each second: the reward once, for the first that suffices."""

    windows = Sliding(timedelta(minutes=1), timedelta(seconds=1))
    allowed_lateness = timedelta(0)
    rewarded: ValueState[int]

    def on_window(self, value: int, ctx: WindowContext[LevelUp]) -> None:
        last = self.rewarded.value
        if value >= 500 and (last is None or ctx.window.start >= last + MINUTE):
            self.rewarded.value = ctx.window.start
            ctx.emit(LevelUp(ctx.key, ctx.window.start, value))


def test_in_sliding_minutes_pops_around_a_full_minute_count_together() -> None:
    across = [
        msgspec.structs.replace(ALICE, at=NOON + 50 * SECOND),
        msgspec.structs.replace(BOB, at=NOON + 70 * SECOND),
    ]
    tumbling, sliding = ProcessHarness(LevelUps()), ProcessHarness(SlidingLevelUps())
    tumbling.feed(across)
    sliding.feed(across)

    assert tumbling.end_of_input() == []
    assert sliding.end_of_input() == [LevelUp("reds", NOON + 11 * SECOND, 520)]


@given(pops)
def test_sliding_rewards_do_not_depend_on_how_arrivals_are_cut(story: list[Pops]) -> None:
    ran = split_invariant(SlidingLevelUps, story, delay=timedelta(minutes=4), cuts=[(), (1,), (2,)])

    for team in {each.team for each in story}:
        own = [each for each in story if each.team == team]
        found = [each.minute for each in ran.outputs.main if each.team == team]
        assert found == rewards(own)


def rewards(story: list[Pops]) -> list[int]:
    """Starts of the minutes with 500 pops, each the first that is a minute after the one before."""
    found: list[int] = []
    first = min(each.at for each in story) - MINUTE
    for start in range(first, max(each.at for each in story) + SECOND, SECOND):
        total = sum(each.bubbles for each in story if start <= each.at < start + MINUTE)
        if total >= 500 and (not found or start >= found[-1] + MINUTE):
            found.append(start)
    return found


class Visit(msgspec.Struct, frozen=True):
    country: str
    at: int


class Visits(msgspec.Struct, frozen=True):
    country: str
    start: int
    end: int
    count: int
    mark: str


class SessionsWithAlert(WindowAggregate[Visit, int, Visits]):
    """P24 by sessions instead of hours: a row when there are three events, and one at the end."""

    key = "country"
    time = "at"
    order = "event_time"
    hold = True
    windows = Sessions(timedelta(minutes=5))
    trigger = AnyOf(AtEnd(), EveryCount(3))
    late = None

    def update(self, value: int | None, event: Visit) -> int:
        return (value or 0) + 1

    def combine(self, one: int, other: int) -> int:
        return one + other

    def on_window(self, value: int, ctx: WindowContext[Visits]) -> None:
        if ctx.mark != "early" or not ctx.state.get("told"):
            ctx.state["told"] = True
            ctx.emit(Visits(ctx.key, ctx.window.start, ctx.window.end, value, ctx.mark))


visits = st.lists(
    st.builds(Visit, st.sampled_from(["DE", "FR"]), st.integers(0, 40).map(lambda n: n * MINUTE)),
    min_size=1,
    max_size=10,
)


@given(visits)
def test_busy_sessions_are_told_once_early_and_once_at_their_end(story: list[Visit]) -> None:
    ran = split_invariant(SessionsWithAlert, story, delay=timedelta(minutes=12))

    expected = []
    for country in ("DE", "FR"):
        came = accepted(story, ran.late)
        times = sorted(each.at for each in came if each.country == country)
        breaks = [n for n, (a, b) in enumerate(pairwise(times), 1) if b - a > 5 * MINUTE]
        for start, end in pairwise([0, *breaks, len(times)]):
            if times[start:end]:
                row = country, times[start], times[end - 1] + 5 * MINUTE, end - start
                expected.append((*row, "first"))
                if end - start >= 3:
                    third = times[start + 2] + 5 * MINUTE
                    expected.append((country, times[start], third, 3, "early"))
    found = Counter((e.country, e.start, e.end, e.count, e.mark) for e in ran.outputs.main)
    assert found == Counter(expected)
    assert ran.state is None


class ByMarker(KeyedProcess[Reading, Reading]):
    """F049: only readings of sensor_1 move the clock, to a minute before them.

    One key for all, a clock of its own in the state, and the readings that wait for it. What the
    clock has passed goes out in order of time; what comes behind it goes aside.
    """

    time = "timestamp"
    late = SideOutput("behind_the_marker", Reading)

    clock: ValueState[int]
    waiting: ListState[Reading]

    @staticmethod
    def key(event: Reading) -> int:
        return 0

    def on_event(self, event: Reading, ctx: Context[Reading]) -> None:
        clock = self.clock.value
        if clock is not None and event.timestamp <= clock:
            ctx.output(self.late, event)
            return
        self.waiting.append(event)
        if event.id == "sensor_1":
            self.advance(max(clock or 0, event.timestamp - MINUTE), ctx)

    def advance(self, clock: int, ctx: Context[Reading]) -> None:
        self.clock.value = clock
        due = sorted(self.waiting, key=lambda each: each.timestamp)
        for each in due:
            if each.timestamp <= clock:
                ctx.emit(each)
        self.waiting[:] = [each for each in due if each.timestamp > clock]


def test_only_the_marker_sensor_moves_the_clock() -> None:
    harness = ProcessHarness(ByMarker())
    harness.feed([reading(300, id="sensor_2"), reading(10, id="sensor_2"), reading(5)])
    assert harness.outputs() == []

    harness.feed([reading(100), reading(30, id="sensor_2"), reading(50, id="sensor_2")])
    assert [each.timestamp // SECOND for each in harness.outputs()] == [5, 10]
    assert [each.timestamp // SECOND for each in harness.side("behind_the_marker")] == [30]


@given(readings(last_second=300))
def test_what_the_marker_releases_does_not_depend_on_how_arrivals_are_cut(
    story: list[Reading],
) -> None:
    ran = split_invariant(ByMarker, story, delay=timedelta(minutes=6), in_order=True)

    clock, waiting, out, late = 0, list[Reading](), list[Reading](), list[Reading]()
    marked = False
    for each in story:
        if marked and each.timestamp <= clock:
            late.append(each)
            continue
        waiting.append(each)
        if each.id == "sensor_1":
            marked, clock = True, max(clock, each.timestamp - MINUTE)
            due = [e for e in waiting if e.timestamp <= clock]
            out += sorted(due, key=lambda e: e.timestamp)
            waiting = [e for e in waiting if e.timestamp > clock]
    assert ran.outputs.main == out
    assert ran.outputs.sides["behind_the_marker"] == late
