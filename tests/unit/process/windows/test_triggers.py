"""When windows fire, when they are purged, and that nothing of them is left."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rivermark.model.errors import DeclarationError
from rivermark.process import Context, ValueState
from rivermark.process.windows import (
    AnyOf,
    AtEnd,
    Counting,
    Every,
    EveryCount,
    Evictor,
    LastCount,
    LastSpan,
    OnValue,
    Purging,
    Sessions,
    Sliding,
    Trigger,
    TriggerContext,
    TriggerResult,
    Tumbling,
    Window,
    WindowContext,
)
from rivermark.testing import ProcessHarness
from tests.unit.process.windows.counts import SECOND, Counted, Counts, Listed, Lists, Reading, at

TEN_SECONDS = timedelta(seconds=10)


class InTens(Counts):
    windows = Tumbling(TEN_SECONDS)


def test_a_window_fires_once_when_the_watermark_reaches_its_end() -> None:
    tens = ProcessHarness(InTens())
    tens.feed(at(1, 2, 11))
    assert tens.advance_watermark(9_999) == []
    assert tens.advance_watermark(10_000) == [Counted("a", 10, 2)]
    assert tens.advance_watermark(12_000) == []
    assert tens.timers_of("a").event == (20_000,)


def test_an_event_of_a_window_that_is_gone_is_late_and_kept_aside() -> None:
    tens = ProcessHarness(InTens())
    tens.advance_watermark(10_000)
    tens.feed(at(9, 12))

    assert tens.side("late_readings") == at(9)
    assert tens.end_of_input() == [Counted("a", 20, 1)]
    assert tens.is_empty()


def test_an_event_behind_the_watermark_counts_while_its_window_is_open() -> None:
    tens = ProcessHarness(InTens())
    tens.advance_watermark(9_000)
    tens.feed(at(3))

    assert tens.end_of_input() == [Counted("a", 10, 1)]


def test_an_event_late_for_some_of_its_windows_counts_in_the_others() -> None:
    class Slides(Counts):
        windows = Sliding(TEN_SECONDS, timedelta(seconds=5))

    slides = ProcessHarness(Slides())
    slides.advance_watermark(10_000)
    slides.feed(at(7))

    assert slides.side("late_readings") == []
    assert slides.end_of_input() == [Counted("a", 15, 1)]


def test_late_events_may_be_dropped_where_a_process_says_so() -> None:
    class Drops(InTens):
        late = None  # type: ignore[assignment]

    drops = ProcessHarness(Drops())
    drops.advance_watermark(10_000)
    drops.feed(at(9))

    assert drops.is_empty()


@pytest.mark.parametrize(
    ("seconds", "fired"),
    [
        ((1, 2, 3, 4, 5), [((1, 2), "early"), ((3, 4), "early"), ((5,), "first")]),
        ((1, 2), [((1, 2), "early")]),
    ],
    ids=["fires with what came since", "without contents gives nothing"],
)
def test_a_window_is_purged_by_its_verdict(
    seconds: tuple[int, ...], fired: list[tuple[tuple[int, ...], str]]
) -> None:
    class Purges(Lists):
        windows = Tumbling(TEN_SECONDS)
        trigger = Purging(AnyOf(AtEnd(), EveryCount(2)))

    purges = ProcessHarness(Purges())
    purges.feed(at(*seconds))
    purges.end_of_input()

    assert [(each.values, each.mark) for each in purges.outputs()] == fired
    assert purges.is_empty()


def test_early_results_come_at_most_each_second_and_only_when_something_is_new() -> None:
    class Early(Counts):
        windows = Tumbling(timedelta(seconds=30))
        trigger = AnyOf(AtEnd(), Every(timedelta(seconds=1)))

        def on_window(self, value: int, ctx: WindowContext[Counted]) -> None:
            ctx.emit(Counted(ctx.key, ctx.timestamp, value, ctx.mark))

    early = ProcessHarness(Early())
    early.feed(at(0.5))
    early.advance_watermark(1_500)
    early.advance_watermark(5_000)
    early.feed(at(5.2))
    early.advance_watermark(29_000)
    early.end_of_input()

    assert early.outputs() == [
        Counted("a", 1_500, 1, "early"),
        Counted("a", 5_500, 2, "early"),
        Counted("a", 30_000, 2, "first"),
    ]
    assert early.is_empty()


def test_a_value_may_set_a_window_off() -> None:
    class OnSeven(Lists):
        windows = Tumbling(TEN_SECONDS)
        trigger = AnyOf(AtEnd(), OnValue(lambda event: event.value == 7))

    seven = ProcessHarness(OnSeven())
    seven.feed([Reading("a", 1, 3), Reading("a", 2, 7), Reading("a", 3, 4)])
    seven.end_of_input()

    assert [each.values for each in seven.outputs()] == [(3, 7), (3, 7, 4)]


class TwoWithinFiveSeconds(Trigger):
    """Fires and purges when two events come within five seconds of event time."""

    def on_event(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        before = ctx.state.get("before")
        ctx.state["before"] = ctx.at
        if isinstance(before, int) and ctx.at - before <= 5 * SECOND:
            return TriggerResult.FIRE_AND_PURGE
        return TriggerResult.CONTINUE


def test_a_trigger_of_ones_own_may_look_for_a_pattern() -> None:
    class Pairs(Lists):
        windows = Tumbling(timedelta(hours=1))
        trigger = TwoWithinFiveSeconds()

    pairs = ProcessHarness(Pairs())
    pairs.feed(at(0, 10, 14, 30))
    pairs.end_of_input()

    assert [each.values for each in pairs.outputs()] == [(1, 2, 3)]
    assert pairs.is_empty()


def test_windows_by_the_wall_clock_ignore_event_time() -> None:
    class ByWall(Counts):
        windows = Tumbling(TEN_SECONDS, clock="processing")

    wall = ProcessHarness(ByWall(), processing_time=3_000)
    wall.feed(at(100, 1))
    wall.advance_watermark(1_000_000)
    assert wall.outputs() == []

    assert wall.advance_processing_time(10_000) == [Counted("a", 10, 2)]
    assert wall.is_empty()


def test_sessions_with_early_results_keep_firing_after_a_merge() -> None:
    class Early(Counts):
        windows = Sessions(TEN_SECONDS)
        trigger = AnyOf(AtEnd(), EveryCount(2))

    early = ProcessHarness(Early())
    early.feed(at(0, 15, 8, 16))
    early.end_of_input()

    # As Flink's CountTrigger: two sessions of one event and the one that joins them are three.
    assert [(each.count, each.mark) for each in early.outputs()] == [(3, "early"), (4, "first")]
    assert early.is_empty()


def test_an_evictor_chooses_what_the_function_sees() -> None:
    class LastTwo(Lists):
        windows = Tumbling(TEN_SECONDS)
        evictor = LastCount(2)

    class LastSecond(Lists):
        windows = Tumbling(TEN_SECONDS)
        evictor = LastSpan(timedelta(seconds=1))

    for process, expected in ((LastTwo(), (3, 4)), (LastSecond(), (2, 4))):
        harness = ProcessHarness(process)
        harness.feed(at(1, 4.5, 2, 5))
        harness.end_of_input()
        assert harness.outputs() == [Listed("a", expected)]


def test_an_evictor_may_choose_after_the_function_has_seen_them() -> None:
    class KeepOne(Evictor):
        def after(self, elements: list[Any], window: Window) -> list[Any]:
            return elements[-1:]

    class Shows(Lists):
        windows = Tumbling(TEN_SECONDS)
        trigger = EveryCount(2)
        evictor = KeepOne()

    shows = ProcessHarness(Shows())
    shows.feed(at(1, 2, 3, 4))

    assert [each.values for each in shows.outputs()] == [(1, 2), (2, 3, 4)]


def test_an_evictor_needs_the_events_themselves() -> None:
    with pytest.raises(DeclarationError, match="an evictor needs the events"):

        class Evicts(Counts):
            windows = Tumbling(TEN_SECONDS)
            evictor = LastCount(2)

    with pytest.raises(DeclarationError, match="an evictor needs the events"):

        class Slides(Counts):
            windows = Counting(4, 2)


def test_a_window_has_state_of_its_own_beside_that_of_its_key() -> None:
    class Numbers(Counts):
        windows = Tumbling(TEN_SECONDS)
        trigger = AnyOf(AtEnd(), EveryCount(1))
        closed: ValueState[int]

        def on_window(self, value: int, ctx: WindowContext[Counted]) -> None:
            shown = int(ctx.state.get("shown") or 0) + 1
            ctx.state["shown"] = shown
            if ctx.mark == "first":
                self.closed.value = self.closed.get(0) + 1
                ctx.emit(Counted(ctx.key, shown, self.closed.get(0)))

    numbers = ProcessHarness(Numbers())
    numbers.feed(at(1, 2, 11))
    numbers.advance_watermark(20_000)

    assert numbers.outputs() == [Counted("a", 3, 1), Counted("a", 2, 2)]
    assert numbers.state_of("a") == {"panes": {}, "closed": 2}


def test_a_process_may_do_more_with_its_events_than_window_them() -> None:
    class Watches(Counts):
        windows = Tumbling(TEN_SECONDS)

        def on_event(self, event: Reading, ctx: Context[Counted]) -> None:
            if event.value >= 0:
                super().on_event(event, ctx)

    watches = ProcessHarness(Watches())
    watches.feed([*at(1, 2), Reading("a", 3_000, -1)])

    assert watches.end_of_input() == [Counted("a", 10, 2)]
