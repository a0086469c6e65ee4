"""The generated sensors."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest

from simulator.readings.world import SensorWorld

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_every_sensor_reads_once_a_period_in_order_of_time() -> None:
    readings = list(SensorWorld(sensors=4).readings(NOON, 10 * SECOND))

    assert len(readings) == 4 * 10
    assert all(a.event_time < b.event_time for a, b in pairwise(readings))
    assert {r.sensor_id for r in readings} == {"sensor_1", "sensor_2", "sensor_3", "sensor_4"}
    for sensor in (1, 4):
        numbers = [r.sequence for r in readings if r.sensor == sensor]
        assert numbers == list(range(numbers[0], numbers[0] + 10))


def test_a_reading_depends_on_seed_sensor_and_time_alone() -> None:
    world = SensorWorld(sensors=3)
    whole = list(world.readings(NOON, 10 * SECOND))
    begun_later = list(world.readings(NOON + 4 * SECOND, 6 * SECOND))
    other_seed = list(SensorWorld(sensors=3, seed=1).readings(NOON, 10 * SECOND))

    assert begun_later == whole[3 * 4 :]
    assert [r.temperature for r in other_seed] != [r.temperature for r in whole]


def test_a_world_without_length_never_ends() -> None:
    first = list(islice(SensorWorld(sensors=2).readings(NOON), 7))

    assert first[-1].event_time == NOON + 3 * SECOND


def test_the_first_sensor_meets_frost_and_the_last_heat() -> None:
    readings = list(SensorWorld().readings(NOON, timedelta(minutes=20)))

    assert min(r.temperature for r in readings if r.sensor == 1) < 32
    assert max(r.temperature for r in readings if r.sensor == 20) > 100


def test_a_world_that_cannot_share_out_its_period_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one sensor"):
        SensorWorld(sensors=0)
    with pytest.raises(ValueError, match="millisecond"):
        SensorWorld(sensors=20, period=timedelta(milliseconds=19))
