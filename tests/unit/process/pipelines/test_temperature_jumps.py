"""P6 with thresholds per sensor as a second keyed input, in order of arrival."""

from __future__ import annotations

import msgspec

from rivermark.process import Context, Input, KeyedProcess, ValueState
from rivermark.testing import ProcessHarness
from tests.unit.process.pipelines.sensors import Reading, reading


class Jump(msgspec.Struct, frozen=True):
    id: str
    temperature: float
    difference: float


class Threshold(msgspec.Struct, frozen=True):
    """A new threshold of a sensor; 0.0 removes it."""

    id: str
    threshold: float
    timestamp: int = 0


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
