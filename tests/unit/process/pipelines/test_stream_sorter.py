"""P28: events leave in order of time, each when the watermark reaches it."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermark.process import Context, KeyedProcess, MapState, SideOutput
from rivermark.testing import ProcessHarness, split_invariant


class Event(msgspec.Struct, frozen=True):
    at: int
    stream: str = "all"


class Sorted(KeyedProcess[Event, Event]):
    """Leaves the sorting to the engine: events are held until the watermark."""

    key = "stream"
    time = "at"
    order = "event_time"
    hold = True
    late = SideOutput("late_events", Event)

    def on_event(self, event: Event, ctx: Context[Event]) -> None:
        if ctx.is_late:
            ctx.output(self.late, event)
        else:
            ctx.emit(event)


class SortedByHand(KeyedProcess[Event, Event]):
    """Keeps events by their time; a timer at each time releases and clears them."""

    key = "stream"
    time = "at"
    hold = False
    late = SideOutput("late_events", Event)

    waiting: MapState[int, list[Event]]

    def on_event(self, event: Event, ctx: Context[Event]) -> None:
        if ctx.is_late:
            ctx.output(self.late, event)
            return
        self.waiting.setdefault(event.at, []).append(event)
        ctx.timers.event.register(event.at)

    def on_timer(self, at: int, ctx: Context[Event]) -> None:
        for event in self.waiting.pop(at):
            ctx.emit(event)


ARRIVALS = [4, 2, 7, 11, 9, 15, 12, 13, 17, 14, 21, 24, 22, 19, 23]
BOTH = pytest.mark.parametrize("process", [Sorted, SortedByHand])


@BOTH
@pytest.mark.parametrize(
    ("delay", "late"),
    [(6, []), (5, [19]), (3, [12, 14, 19]), (2, [2, 9, 12, 13, 14, 22, 19])],
)
def test_events_leave_in_order_and_the_late_ones_aside(
    process: type[KeyedProcess[Event, Event]], delay: int, late: list[int]
) -> None:
    harness = ProcessHarness(process())
    for place, at in enumerate(ARRIVALS):
        harness.feed(Event(at))
        harness.advance_watermark(max(ARRIVALS[: place + 1]) - delay)
        assert all(each.at <= harness.watermark for each in harness.outputs())
    harness.end_of_input()

    assert [each.at for each in harness.side("late_events")] == late
    assert [each.at for each in harness.outputs()] == sorted(set(ARRIVALS) - set(late))
    assert harness.is_empty()


@BOTH
@given(st.lists(st.integers(0, 30).map(Event), min_size=1, max_size=9))
def test_the_order_does_not_depend_on_how_arrivals_are_cut(
    process: type[KeyedProcess[Event, Event]], story: list[Event]
) -> None:
    ran = split_invariant(process, story, delay=timedelta(milliseconds=10), in_order=True)

    left = [each.at for each in ran.outputs.main]
    assert left == sorted(left)
    assert len(left) + len(ran.late) == len(story)
    assert ran.state is None
