"""P6: a temperature that jumps by more than a threshold raises an alert."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from hypothesis import given, settings

from rivermark.process import (
    Context,
    Input,
    KeyedProcess,
    ProcessHarness,
    ValueState,
    split_invariant,
)
from tests.unit.process.pipelines.sensors import Reading, reading, readings
from tests.unit.process.pipelines.times import HOUR, SECOND

THRESHOLD = 1.7


class Jump(msgspec.Struct, frozen=True):
    id: str
    temperature: float
    difference: float


class Threshold(msgspec.Struct, frozen=True):
    """A new threshold of a sensor; 0.0 removes it."""

    id: str
    threshold: float
    timestamp: int = 0


class TemperatureJumps(KeyedProcess[Reading, Jump]):
    """Keeps the last reading of a sensor, until an hour of event time has passed since it.

    The first reading never alerts. Readings are compared in order of their time.
    """

    key = "id"
    time = "timestamp"
    order = "event_time"
    hold = True

    last: ValueState[Reading]

    def on_event(self, event: Reading, ctx: Context[Jump]) -> None:
        last = self.last.value
        if last is not None:
            ctx.timers.event.delete(last.timestamp + HOUR)
            difference = abs(event.temperature - last.temperature)
            if difference > THRESHOLD:
                ctx.emit(Jump(event.id, event.temperature, difference))
        self.last.value = event
        ctx.timers.event.register(event.timestamp + HOUR)

    def on_timer(self, at: int, ctx: Context[Jump]) -> None:
        self.last.clear()


class JumpsByThreshold(KeyedProcess[Reading | Threshold, Jump]):
    """Thresholds come as a stream. Keeps them until they are removed, and the last temperature.

    Without a threshold a sensor raises no alert, but its temperature is remembered.
    """

    thresholds = Input(Threshold, key="id", time="timestamp", control=True)
    readings = Input(Reading, key="id", time="timestamp")

    threshold: ValueState[float]
    last: ValueState[float]

    def on_thresholds(self, event: Threshold, ctx: Context[Jump]) -> None:
        self.threshold.value = event.threshold or None

    def on_readings(self, event: Reading, ctx: Context[Jump]) -> None:
        threshold, last = self.threshold.value, self.last.value
        self.last.value = event.temperature
        if threshold is not None and last is not None:
            difference = abs(event.temperature - last)
            if difference > threshold:
                ctx.emit(Jump(event.id, event.temperature, difference))


STORY = [20.0, 21.5, 24.0, 24.0, 22.5, 20.0]


def test_jumps_of_more_than_the_threshold_alert() -> None:
    jumps = ProcessHarness(TemperatureJumps())
    jumps.feed([reading(second, each) for second, each in enumerate(STORY)])
    jumps.end_of_input()

    assert jumps.outputs() == [Jump("sensor_1", 24.0, 2.5), Jump("sensor_1", 20.0, 2.5)]
    assert jumps.is_empty()


def test_after_an_hour_of_silence_a_reading_is_a_first_one_again() -> None:
    jumps = ProcessHarness(TemperatureJumps())
    seconds = [0, 1, 2, 3, 4, 4 + 3_601]
    jumps.feed([reading(second, each) for second, each in zip(seconds, STORY, strict=True)])
    jumps.end_of_input()

    assert jumps.outputs() == [Jump("sensor_1", 24.0, 2.5)]


def test_readings_are_compared_in_order_of_time_not_of_arrival() -> None:
    jumps = ProcessHarness(TemperatureJumps())
    shuffled = [reading(second, STORY[second]) for second in (3, 0, 5, 1, 4, 2)]
    for each in shuffled:
        jumps.feed(each)
    jumps.end_of_input()

    assert [each.temperature for each in jumps.outputs()] == [24.0, 20.0]


UPDATES = [
    Threshold("sensor_1", 5.0),
    Threshold("sensor_2", 0.9),
    Threshold("sensor_3", 0.5),
    Threshold("sensor_1", 1.2),
    Threshold("sensor_3", 0.0),
]


def test_thresholds_are_changed_and_removed_by_their_stream() -> None:
    jumps = ProcessHarness(JumpsByThreshold())
    jumps.feed(UPDATES, "thresholds")

    assert {key: jumps.state_of(key)["threshold"] for key in jumps.all_keys()} == {
        "sensor_1": 1.2,
        "sensor_2": 0.9,
    }


def test_without_a_threshold_there_is_no_alert_but_the_temperature_is_remembered() -> None:
    jumps = ProcessHarness(JumpsByThreshold())
    jumps.feed(reading(0, 20.0, "sensor_3"), "readings")
    jumps.feed(reading(1, 30.0, "sensor_3"), "readings")
    assert jumps.outputs() == []

    jumps.feed(Threshold("sensor_3", 1.0), "thresholds")
    jumps.feed(reading(2, 35.0, "sensor_3"), "readings")
    assert jumps.outputs() == [Jump("sensor_3", 35.0, 5.0)]


def test_a_threshold_counts_for_the_readings_of_its_own_batch() -> None:
    jumps = ProcessHarness(JumpsByThreshold())
    jumps.feed_together(
        {
            "readings": [reading(0, 20.0), reading(1, 22.0)],
            "thresholds": [Threshold("sensor_1", 1.2)],
        }
    )

    assert jumps.outputs() == [Jump("sensor_1", 22.0, 2.0)]


@given(readings(last_second=3 * HOUR // SECOND, coldest=20, hottest=24))
@settings(max_examples=60, deadline=None)
def test_alerts_do_not_depend_on_how_arrivals_are_cut(story: list[Reading]) -> None:
    ran = split_invariant(TemperatureJumps, story, delay=timedelta(hours=1), in_order=False)

    assert ran.state is None
