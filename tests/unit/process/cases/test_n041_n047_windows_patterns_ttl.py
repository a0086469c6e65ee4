"""Second round: early firing on merging windows, patterns, lists and maps with a TTL."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar

import msgspec
import pytest

from rivermark.process import TTL, Context, KeyedProcess, ListState, MapState
from rivermark.process.patterns import Match, Pattern, PatternProcess
from rivermark.process.patterns.pattern import Condition
from rivermark.process.windows import (
    AnyOf,
    AtEnd,
    Every,
    EveryCount,
    Sessions,
    Trigger,
    WindowAggregate,
    WindowContext,
)
from rivermark.testing import ProcessHarness, split_invariant
from tests.seeds import seeds
from tests.unit.process.readings import MINUTE, Reading


class Seen(msgspec.Struct, frozen=True):
    at: int
    count: int
    mark: str


class Activity(WindowAggregate[Reading, int, Seen]):
    key = "sensor"
    time = "at"
    windows = Sessions(timedelta(minutes=5))
    trigger: ClassVar[Trigger | None] = AnyOf(AtEnd(), Every(timedelta(minutes=1)))
    late = None

    def update(self, value: int | None, event: Reading) -> int:
        return (value or 0) + 1

    def combine(self, one: int, other: int) -> int:
        return one + other

    def on_window(self, value: int, ctx: WindowContext[Seen]) -> None:
        ctx.emit(Seen(ctx.timestamp, value, ctx.mark))


class HeldActivity(Activity):
    order = "event_time"
    hold = True


def test_n041_a_session_gives_early_results_while_events_go_on_merging_it() -> None:
    activity = ProcessHarness(Activity())
    for at in range(0, 10 * MINUTE + 1, MINUTE // 2):
        activity.feed(Reading("k", at))
        activity.advance_watermark(at)
    activity.end_of_input()

    early = [each for each in activity.outputs() if each.mark == "early"]
    assert [each.at for each in early] == [minute * MINUTE for minute in range(1, 11)]
    assert [each.count for each in early] == [2 * minute + 1 for minute in range(1, 11)]
    assert activity.outputs()[-1] == Seen(15 * MINUTE, 21, "first")
    assert activity.is_empty()


def early_results(times: list[int], gap: int, interval: int) -> list[Seen]:
    """What Every gives: each interval after a session's first event its count where it grew."""
    sessions: list[list[int]] = []
    for at in sorted(times):
        if sessions and at - sessions[-1][-1] <= gap:
            sessions[-1].append(at)
        else:
            sessions.append([at])
    results = []
    for session in sessions:
        end, seen = session[-1] + gap, 0
        for instant in range(session[0] + interval, end, interval):
            count = sum(1 for at in session if at <= instant)
            if count != seen:
                results.append(Seen(instant, count, "early"))
                seen = count
        results.append(Seen(end, len(session), "first"))
    return results


@pytest.mark.parametrize("seed", seeds(2, 10))
def test_n041_early_results_of_sessions_are_those_of_their_first_event_in_every_cut(
    seed: int,
) -> None:
    chance = random.Random(seed)
    times = sorted(chance.sample(range(0, 40 * MINUTE, 1_000), chance.randint(1, 12)))
    arrivals = [Reading("k", at) for at in times]
    chance.shuffle(arrivals)

    ran = split_invariant(HeldActivity, arrivals, delay=timedelta(hours=2))

    expected = early_results(times, 5 * MINUTE, MINUTE)
    assert sorted(ran.outputs.main, key=lambda each: (each.at, each.count)) == expected
    assert ran.state is None


def test_n041_counting_goes_on_over_a_merge_with_its_time_out() -> None:
    class Threes(Activity):
        trigger = EveryCount(3, timeout=2 * MINUTE)

    threes = ProcessHarness(Threes())
    threes.feed([Reading("k", 0), Reading("k", 8 * MINUTE), Reading("k", 4 * MINUTE)])
    assert threes.outputs() == [Seen(4 * MINUTE, 3, "early")]

    waiting = ProcessHarness(Threes())
    waiting.feed([Reading("k", 0), Reading("k", MINUTE)])
    waiting.advance_watermark(2 * MINUTE)
    assert waiting.outputs() == [Seen(2 * MINUTE, 2, "early")]


class Values(PatternProcess[Reading, tuple[int, ...]]):
    key = "sensor"
    time = "at"

    def on_match(self, match: Match[Reading], ctx: Context[tuple[int, ...]]) -> None:
        ctx.emit(tuple(each.value for each in match.events()))


def above(least: int) -> Condition:
    return lambda event, earlier: event.value > least


def equal(value: int) -> Condition:
    return lambda event, earlier: event.value == value


def found(
    pattern: Pattern, values: list[int], *, apart: int = 1, after_match: Any = "keep"
) -> list[tuple[int, ...]]:
    process = type("AnyValues", (Values,), {"pattern": pattern, "after_match": after_match})
    harness: ProcessHarness[Reading, tuple[int, ...]] = ProcessHarness(process())
    harness.feed([Reading("k", place * apart, value) for place, value in enumerate(values)])
    harness.end_of_input()
    assert harness.is_empty()
    return harness.outputs()


SOON = timedelta(minutes=1)
LOOPS: list[Callable[[Pattern], Pattern]] = [
    lambda pattern: pattern.one_or_more(),
    lambda pattern: pattern.times(1, 3),
]


@pytest.mark.parametrize("loop", LOOPS)
def test_n043_an_event_that_fits_a_loop_and_the_next_step_is_tried_as_each(
    loop: Callable[[Pattern], Pattern],
) -> None:
    hot = loop(Pattern.begin("hot", above(100)))
    pattern = hot.followed_by("very", above(200)).within(SOON)

    assert found(pattern, [101, 250]) == [(101, 250)]
    assert found(pattern, [101, 250, 251]) == [(101, 250), (101, 250, 251), (250, 251)]


def test_n043_an_event_that_fits_an_optional_step_and_the_one_behind_it_is_tried_as_each() -> None:
    pattern = (
        Pattern.begin("a", equal(1))
        .followed_by("m", above(100))
        .optional()
        .followed_by("c", above(50))
        .within(SOON)
    )

    assert found(pattern, [1, 150]) == [(1, 150)]
    assert found(pattern, [1, 150, 60]) == [(1, 150), (1, 150, 60)]


def test_n044_an_absence_stands_behind_the_optional_step_before_it() -> None:
    pattern = (
        Pattern.begin("one", equal(1))
        .followed_by("five", equal(5))
        .optional()
        .not_followed_by(equal(9))
        .followed_by("two", equal(2))
        .within(SOON)
    )

    assert found(pattern, [1, 9, 5, 2]) == [(1, 5, 2)]
    assert found(pattern, [1, 5, 9, 2]) == []
    assert found(pattern, [1, 9, 2]) == []
    assert found(pattern, [1, 2]) == [(1, 2)]


def test_n044_an_absence_at_the_end_stands_behind_an_optional_step_too() -> None:
    pattern = (
        Pattern.begin("one", equal(1))
        .followed_by("five", equal(5))
        .optional()
        .not_followed_by(equal(9))
        .within(SOON)
    )

    assert found(pattern, [1, 9, 5]) == [(1, 5)]
    assert found(pattern, [1, 9]) == []
    assert found(pattern, [1]) == [(1,)]


@pytest.mark.parametrize("apart", [0, 1])
def test_n045_two_beginnings_of_one_instant_are_two(apart: int) -> None:
    pattern = (
        Pattern.begin("a", lambda event, earlier: event.value < 100)
        .followed_by("b", lambda event, earlier: event.value > earlier.one("a").value + 100)
        .within(SOON)
    )

    assert found(pattern, [5, 10, 107, 112], apart=apart, after_match="skip_to_next") == [
        (5, 107),
        (10, 112),
    ]


def test_n045_a_beginning_gives_one_match_where_it_may_skip_to_the_next() -> None:
    pattern = (
        Pattern.begin("a", equal(1))
        .followed_by_any("m", above(100))
        .followed_by("c", equal(2))
        .within(SOON)
    )

    values = [1, 150, 160, 2]
    assert found(pattern, values) == [(1, 150, 2), (1, 160, 2)]
    assert found(pattern, values, after_match="skip_to_next") == [(1, 150, 2)]


def test_n045_a_match_by_absence_drops_other_beginnings_as_any_match_does() -> None:
    pattern = (
        Pattern.begin("a", equal(1))
        .followed_by("b", equal(2))
        .not_followed_by(equal(3))
        .within(SOON)
    )

    assert found(pattern, [1, 1, 2]) == [(1, 2), (1, 2)]
    assert found(pattern, [1, 1, 2], apart=0, after_match="skip_past_last") == [(1, 2)]
    assert found(pattern, [1, 2, 1, 2], after_match="skip_past_last") == [(1, 2), (1, 2)]


class Kept(KeyedProcess[Reading, tuple[list[int], list[int]]]):
    key = "sensor"
    time = "at"

    listed: ListState[int] = ListState(ttl=TTL(timedelta(milliseconds=100)))
    mapped: MapState[int, int] = MapState(ttl=TTL(timedelta(milliseconds=100)))

    def on_event(self, event: Reading, ctx: Context[tuple[list[int], list[int]]]) -> None:
        ctx.emit((list(self.listed), list(self.mapped.values())))
        self.listed.append(event.at)
        self.mapped[event.value] = event.at


def test_n047_a_list_shows_an_earlier_event_what_a_map_shows_it() -> None:
    kept = ProcessHarness(Kept())
    kept.feed([Reading("k", at, value) for value, at in enumerate((0, 200, 50))])

    assert kept.outputs()[-1] == ([0, 200], [0, 200])


@pytest.mark.parametrize("seed", seeds(2, 10))
def test_n047_lists_and_maps_show_what_was_written_less_than_a_life_before(seed: int) -> None:
    chance = random.Random(seed)
    kept = ProcessHarness(Kept())
    watermark = -1
    written: list[tuple[int, int]] = []
    for value in range(60):
        at = chance.randrange(400)
        now = max(at, watermark)
        seen = [wrote for wrote, end in written if end > now]
        assert kept.feed(Reading("k", at, value)) == [(seen, seen)]
        written.append((at, now + 100))
        if chance.random() < 0.2:
            watermark = max(watermark, chance.randrange(400))
            kept.advance_watermark(watermark)
    kept.end_of_input()
    assert kept.is_empty()


class Edits(KeyedProcess[Reading, list[int]]):
    key = "sensor"
    time = "at"

    listed: ListState[int] = ListState(ttl=TTL(timedelta(milliseconds=100)))
    mapped: MapState[str, int] = MapState(ttl=TTL(timedelta(milliseconds=100)))

    def on_event(self, event: Reading, ctx: Context[list[int]]) -> None:
        edits[event.value](self.listed, self.mapped)
        ctx.emit(list(self.listed))


edits: list[Callable[[Any, Any], Any]] = [
    lambda some, named: (some.extend([1, 2, 3]), named.update(a=1)),
    lambda some, named: None,
    lambda some, named: some.insert(0, 7),
    lambda some, named: some.append(8),
    lambda some, named: some.__setitem__(-1, 9),
    lambda some, named: some.__setitem__(slice(0, 1), [4, 5]),
    lambda some, named: some.__delitem__(0),
    lambda some, named: some.__delitem__(slice(0, 2)),
    lambda some, named: (some.clear(), named.clear()),
]


def test_n047_positions_count_what_lives_whatever_an_earlier_event_may_still_see() -> None:
    ran = ProcessHarness(Edits())
    ran.feed([Reading("k", 0, 0), *(Reading("k", 200, edit) for edit in (1, 2, 3, 4, 5, 6))])
    assert ran.outputs()[1:] == [[], [7], [7, 8], [7, 9], [4, 5, 9], [5, 9]]
    assert ran.feed(Reading("k", 50, 1)) == [[1, 2, 3, 5, 9]]
    assert ran.feed(Reading("k", 200, 7)) == [[]]
    assert ran.feed(Reading("k", 50, 1)) == [[1, 2, 3]]
    assert ran.feed(Reading("k", 200, 8)) == [[]]
    assert ran.feed(Reading("k", 50, 1)) == [[]]


def test_n047_what_has_ended_cannot_be_removed_by_its_key() -> None:
    class Removes(Edits):
        def on_event(self, event: Reading, ctx: Context[list[int]]) -> None:
            if event.at == 0:
                self.mapped["a"] = 1
                return
            with pytest.raises(KeyError):
                del self.mapped["a"]
            assert self.mapped.pop("a", None) is None

    ProcessHarness(Removes()).feed([Reading("k", 0), Reading("k", 200)])
