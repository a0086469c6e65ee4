"""P5: readings of a sensor pass only while a switch holds it open."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermark.process import Context, Input, KeyedProcess, ValueState
from rivermark.process.timers import Calendar
from rivermark.testing import InputEvent, ProcessHarness, split_invariant
from tests.unit.process.pipelines.sensors import Reading, reading
from tests.unit.process.pipelines.times import SECOND, accepted


class Switch(msgspec.Struct, frozen=True):
    id: str
    duration_ms: int
    timestamp: int = 0


class SwitchedReadings(KeyedProcess[Reading | Switch, Reading]):
    """By the wall clock. Keeps until when a sensor's readings pass; its timer clears that.

    A second switch moves the end only to a later instant.
    """

    switches = Input(Switch, key="id", control=True)
    readings = Input(Reading, key="id", time="timestamp")

    open_until: ValueState[int]

    def on_switches(self, event: Switch, ctx: Context[Reading]) -> None:
        self.hold_open(ctx.processing_time + event.duration_ms, ctx.timers.processing)

    def on_readings(self, event: Reading, ctx: Context[Reading]) -> None:
        if self.open_until.value is not None:
            ctx.emit(event)

    def on_timer(self, at: int, ctx: Context[Reading]) -> None:
        self.open_until.clear()

    def hold_open(self, until: int, timers: Calendar) -> None:
        before = self.open_until.value
        if before is not None:
            if until <= before:
                return
            timers.delete(before)
        self.open_until.value = until
        timers.register(until)


class SwitchedByEventTime(SwitchedReadings):
    """The same in event time: a replay gives the same readings."""

    order = "event_time"
    hold = True

    switches = Input(Switch, key="id", time="timestamp", control=True)

    def on_switches(self, event: Switch, ctx: Context[Reading]) -> None:
        self.hold_open(event.timestamp + event.duration_ms, ctx.timers.event)


def passed(
    process: KeyedProcess[Reading | Switch, Reading], story: list[tuple[float, Switch | Reading]]
) -> list[float]:
    """Seconds of the readings that passed, of events fed one by one at their wall-clock seconds."""
    harness = ProcessHarness(process)
    for second, event in story:
        harness.advance_processing_time(int(second * SECOND))
        harness.feed(event, "switches" if isinstance(event, Switch) else "readings")
    harness.end_of_input()
    assert harness.is_empty()
    return [each.timestamp / SECOND for each in harness.outputs()]


def at(second: float, sensor: str = "sensor_2") -> tuple[float, Switch | Reading]:
    return second, reading(second, id=sensor)


def switch(
    second: float, duration: float, sensor: str = "sensor_2"
) -> tuple[float, Switch | Reading]:
    return second, Switch(sensor, int(duration * SECOND), int(second * SECOND))


@pytest.mark.parametrize("process", [SwitchedReadings, SwitchedByEventTime])
@pytest.mark.parametrize(
    ("story", "seconds"),
    [
        ([switch(0, 10), switch(4, 10), at(9.9), at(13.9), at(14.1)], [9.9, 13.9]),
        ([switch(0, 20), switch(4, 10), at(14.1), at(19), at(20.1)], [14.1, 19]),
        ([at(0), switch(1, 60, "sensor_7"), at(2), at(3, "sensor_7"), at(4, "sensor_1")], [3]),
    ],
    ids=["the latest deadline wins", "an earlier one does not shorten", "no switch, no reading"],
)
def test_readings_pass_until_the_latest_deadline_of_their_sensor(
    process: type[KeyedProcess[Reading | Switch, Reading]],
    story: list[tuple[float, Switch | Reading]],
    seconds: list[float],
) -> None:
    assert passed(process(), story) == seconds


stories = st.lists(
    st.one_of(
        st.builds(lambda second: at(second)[1], st.integers(0, 40)),
        st.builds(
            lambda second, duration: switch(second, duration)[1],
            st.integers(0, 30),
            st.integers(1, 12),
        ),
    ),
    min_size=1,
    max_size=8,
)


@given(stories)
def test_in_event_time_what_passes_does_not_depend_on_how_arrivals_are_cut(
    story: list[Switch | Reading],
) -> None:
    arrivals = [
        InputEvent(each, "switches" if isinstance(each, Switch) else "readings") for each in story
    ]
    ran = split_invariant(SwitchedByEventTime, arrivals, delay=timedelta(seconds=15))

    came = accepted(story, ran.late)
    switches = [each for each in came if isinstance(each, Switch)]
    expected = [
        each
        for each in came
        if isinstance(each, Reading)
        and any(0 <= each.timestamp - one.timestamp <= one.duration_ms for one in switches)
    ]
    assert ran.outputs.main == sorted(expected, key=lambda each: each.timestamp)
    assert ran.state is None
