"""The order in which a batch's events are handled, lateness, and holding until the watermark."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermark.process import Context, Input, KeyedProcess, ListState, ValueState
from rivermark.process.api.inputs import Arrivals
from rivermark.testing import ProcessHarness, SplitDifference, split_invariant
from tests.unit.process.readings import HOUR, NOON, Note, Reading, reading


class AsTheyCome(KeyedProcess[Reading, Note]):
    key = "sensor"
    time = "at"

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        ctx.emit(Note(f"{ctx.timestamp - NOON}{' late' if ctx.is_late else ''}"))


class ByTime(AsTheyCome):
    order = "event_time"


class Held(ByTime):
    hold = True


def at(*offsets: int) -> list[Reading]:
    return [reading("a", NOON + each) for each in offsets]


def notes(*texts: object) -> list[Note]:
    return [Note(str(each)) for each in texts]


def test_events_are_handled_in_order_of_arrival() -> None:
    assert ProcessHarness(AsTheyCome()).feed(at(3, 1, 2)) == notes(3, 1, 2)


def test_offsets_give_the_order_of_arrival_when_rows_come_shuffled() -> None:
    rows = at(3, 1, 2)
    shuffled = Arrivals("events", rows, ["a"] * 3, [each.at for each in rows], offsets=[7, 9, 8])

    assert ProcessHarness(AsTheyCome()).feed_columns(shuffled) == notes(3, 2, 1)


def test_events_are_handled_in_order_of_time_within_a_batch() -> None:
    by_time = ProcessHarness(ByTime())

    assert by_time.feed(at(3, 1, 2)) == notes(1, 2, 3)
    assert by_time.feed(at(5, 0)) == notes(0, 5)


def test_late_events_reach_the_handler_and_say_so() -> None:
    late = ProcessHarness(AsTheyCome())
    late.advance_watermark(NOON + 10)

    assert late.feed(at(9, 10, 11)) == notes("9 late", "10 late", 11)


def test_held_events_are_handled_when_the_watermark_reaches_them_in_order_of_time() -> None:
    held = ProcessHarness(Held())
    assert held.feed(at(3, 1)) == []
    assert held.feed(at(2)) == []
    assert held.waiting() == 3

    assert held.advance_watermark(NOON + 2) == notes(1, 2)
    assert held.end_of_input() == notes(3)
    assert held.is_empty()


def test_a_late_event_is_not_held() -> None:
    held = ProcessHarness(Held())
    held.advance_watermark(NOON + 10)

    assert held.feed(at(20, 5)) == notes("5 late")
    assert held.waiting() == 1


class Silence(KeyedProcess[Reading, Note]):
    """Forgets a sensor an hour after its latest reading; says what it remembers at a reading."""

    key = "sensor"
    time = "at"
    order = "event_time"
    hold = False
    last: ValueState[Reading]

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        last = self.last.value
        if last is not None:
            ctx.timers.event.delete(last.at + HOUR)
        ctx.emit(Note(f"{event.value} after {None if last is None else last.value}"))
        self.last.value = event
        ctx.timers.event.register(event.at + HOUR)

    def on_timer(self, at: int, ctx: Context[Note]) -> None:
        self.last.clear()


class ExactSilence(Silence):
    hold = True


SILENT_FOR_TWO_HOURS = [
    reading("a", NOON, 1),
    reading("b", NOON + 2 * HOUR, 2),
    reading("a", NOON + 2 * HOUR, 3),
    reading("a", NOON + 3 * HOUR, 4),
]


def test_held_events_and_timers_are_handled_in_one_order_of_time() -> None:
    exact = ProcessHarness(ExactSilence())
    exact.feed(SILENT_FOR_TWO_HOURS)
    exact.advance_watermark(NOON + 10 * HOUR)

    assert exact.outputs() == notes("1 after None", "2 after None", "3 after None", "4 after 3")
    assert exact.is_empty()


def test_without_holding_a_timer_may_fire_after_a_later_event_of_its_batch() -> None:
    with pytest.raises(SplitDifference, match="output 'main' differs"):
        split_invariant(Silence, SILENT_FOR_TWO_HOURS, delay=timedelta(seconds=1))


def test_the_watermark_that_held_events_and_timers_see_is_their_own() -> None:
    class Clocks(ExactSilence):
        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            ctx.emit(Note(f"event {event.at - ctx.watermark}"))
            ctx.timers.event.register(event.at + 5)

        def on_timer(self, at: int, ctx: Context[Note]) -> None:
            ctx.emit(Note(f"timer {at - ctx.watermark}"))

    clocks = ProcessHarness(Clocks())
    clocks.feed(reading("a", NOON))

    assert clocks.advance_watermark(NOON + 1_000) == notes("event 1", "timer 0")


arrivals = st.lists(
    st.builds(
        Reading,
        sensor=st.sampled_from("ab"),
        at=st.integers(0, 40).map(lambda n: NOON + n * HOUR // 5),
        value=st.integers(0, 9),
    ),
    min_size=1,
    max_size=8,
)


@given(arrivals)
def test_holding_makes_every_cut_give_the_same(story: list[Reading]) -> None:
    ran = split_invariant(ExactSilence, story, delay=timedelta(hours=1))

    assert ran.state is None
    assert len(ran.outputs.main) + len(ran.late) == len(story)


class TwoSides(KeyedProcess[Reading, Note]):
    left = Input(Reading, key="sensor", time="at")
    right = Input(Reading, key="sensor", time="at")
    control = Input(Reading, key="sensor", time="at", control=True)

    seen: ListState[str]

    def on_left(self, event: Reading, ctx: Context[Note]) -> None:
        self.note("left", event, ctx)

    def on_right(self, event: Reading, ctx: Context[Note]) -> None:
        self.note("right", event, ctx)

    def on_control(self, event: Reading, ctx: Context[Note]) -> None:
        self.note("control", event, ctx)

    def note(self, side: str, event: Reading, ctx: Context[Note]) -> None:
        self.seen.append(side)
        ctx.emit(Note(f"{side} {event.at - NOON}"))


class TwoSidesByTime(TwoSides):
    order = "event_time"


def test_in_arrival_order_inputs_follow_one_another_controls_first() -> None:
    sides = ProcessHarness(TwoSides())
    sides.feed_together({"right": at(1), "left": at(3, 2), "control": at(9)})

    assert sides.outputs() == notes("control 9", "left 3", "left 2", "right 1")
    assert sides.state_of("a")["seen"] == ["control", "left", "left", "right"]


def test_in_event_time_order_inputs_are_merged_controls_first_at_one_time() -> None:
    sides = ProcessHarness(TwoSidesByTime())
    sides.feed_together({"right": at(1, 3), "left": at(3, 2), "control": at(3)})

    assert sides.outputs() == notes("right 1", "left 2", "control 3", "left 3", "right 3")


def test_a_process_without_event_time_is_handled_at_its_processing_time() -> None:
    class Timeless(AsTheyCome):
        time = None  # type: ignore[assignment]

    timeless = ProcessHarness(Timeless(), processing_time=NOON + 70)

    assert timeless.feed(at(5)) == notes(70)
