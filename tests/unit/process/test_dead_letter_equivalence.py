"""With dead letters, a story with bad events gives what the story without them gives."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermark.process import (
    TTL,
    Context,
    KeyedProcess,
    ListState,
    MapState,
    SideOutput,
    ValueState,
)
from rivermark.testing import ProcessHarness
from tests.unit.process.readings import NOON, Note, Reading


class Box(msgspec.Struct):
    values: list[int] = []


class Busy(KeyedProcess[Reading, Note]):
    """Uses all it has, and fails at the end on a value of 9."""

    key = "sensor"
    time = "at"
    hold = False
    dead_letter = True

    box: ValueState[Box]
    total: ValueState[int] = ValueState(ttl=TTL(timedelta(milliseconds=40)))
    values: ListState[int]
    counts: MapState[int, int] = MapState(ttl=TTL(timedelta(milliseconds=30)))
    side = SideOutput("side", Note)

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        if event.value == 0:
            self.box.clear()
            self.values.clear()
            self.counts.clear()
        else:
            box = self.box.get(Box())
            box.values.append(event.value)
            self.box.value = box
            self.values.insert(0, event.value)
            self.counts[event.value] = self.counts.get(event.value, 0) + 1
            self.total.value = self.total.get(0) + event.value
        if event.value % 2:
            ctx.timers.event.register(event.at + event.value * 5)
        else:
            ctx.timers.event.delete(event.at + 5)
        ctx.emit(Note(f"{event.sensor} {list(self.values)} {dict(self.counts)} {self.total.value}"))
        ctx.output(self.side, Note(str(self.box.value)))
        if event.value == 9:
            raise ValueError("nine")

    def on_timer(self, at: int, ctx: Context[Note]) -> None:
        ctx.emit(Note(f"timer {ctx.key} {at - NOON} {self.total.value}"))
        self.values.append(at - NOON)


class BusyHeld(Busy):
    order = "event_time"
    hold = True


batches = st.lists(
    st.lists(
        st.builds(
            Reading,
            st.sampled_from("ab"),
            st.integers(0, 60).map(lambda n: NOON + n),
            st.sampled_from([0, 1, 2, 3, 9, 9]),
        ),
        max_size=5,
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("process", [Busy, BusyHeld])
@given(batches)
def test_bad_events_leave_no_trace(
    process: type[KeyedProcess[Reading, Note]], story: list[list[Reading]]
) -> None:
    def run(keep_bad: bool) -> tuple[Any, ...]:
        harness = ProcessHarness(process())
        for place, batch in enumerate(story):
            harness.feed([each for each in batch if keep_bad or each.value != 9])
            harness.advance_watermark(NOON + place * 10)
        kept = [(key, harness.state_of(key), harness.timers_of(key)) for key in "ab"]
        harness.end_of_input()
        bad = len(harness.dead_letters())
        return kept, harness.outputs(), harness.side("side"), bad

    *with_bad, dead = run(keep_bad=True)
    *without_bad, none = run(keep_bad=False)

    assert with_bad == without_bad
    assert dead == sum(each.value == 9 for batch in story for each in batch)
    assert none == 0
