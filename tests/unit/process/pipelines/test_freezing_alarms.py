"""P2: every reading passes on, cold ones raise an alarm beside, hot ones an alert."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from hypothesis import given

from rivermark.process import Context, KeyedProcess, SideOutput
from rivermark.testing import ProcessHarness, split_invariant
from tests.unit.process.pipelines.sensors import Reading, reading, readings


class Alarm(msgspec.Struct, frozen=True):
    text: str


class FreezingAlarms(KeyedProcess[Reading, Reading]):
    """Keeps nothing: each reading is judged by itself."""

    key = "id"
    time = "timestamp"
    freezing = SideOutput("freezing_alarms", Alarm)
    hot = SideOutput("hot_readings", Reading)

    def on_event(self, event: Reading, ctx: Context[Reading]) -> None:
        if event.temperature < 32.0:
            ctx.output(self.freezing, Alarm(f"Freezing alarm for {event.id}"))
        if event.temperature > 90.0:
            ctx.output(self.hot, event)
        ctx.emit(event)


def test_only_a_reading_below_the_freezing_point_alarms_and_all_pass_on() -> None:
    alarms = ProcessHarness(FreezingAlarms())
    alarms.feed([reading(1, 31.9), reading(2, 32.0), reading(3, 90.0), reading(4, 90.1)])

    assert alarms.side("freezing_alarms") == [Alarm("Freezing alarm for sensor_1")]
    assert alarms.side("hot_readings") == [reading(4, 90.1)]
    assert [each.temperature for each in alarms.outputs()] == [31.9, 32.0, 90.0, 90.1]
    assert alarms.is_empty()


@given(readings())
def test_alarms_do_not_depend_on_how_arrivals_are_cut(story: list[Reading]) -> None:
    ran = split_invariant(FreezingAlarms, story, delay=timedelta(hours=1))

    cold = [each for each in story if each.temperature < 32.0]
    assert len(ran.outputs.sides["freezing_alarms"]) == len(cold)
    assert ran.state is None
