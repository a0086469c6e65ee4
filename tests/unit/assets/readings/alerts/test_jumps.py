"""P6: a temperature that jumps by more than its threshold raises an alert."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.readings.alerts.jumps import EVERY_SENSOR, Jump, TemperatureJumps, Threshold
from assets.readings.alerts.reading import Reading
from rivermark.testing import InputEvent, ProcessHarness, split_invariant
from tests.oracles import alerts as oracle
from tests.unit.assets.readings.alerts.stories import HOUR, SECOND, plain, reading, readings

STORY = [20.0, 21.5, 24.0, 24.0, 22.5, 20.0]


def threshold(
    second: float, degrees: object, sensor: str = EVERY_SENSOR, version: int = 1
) -> Threshold:
    return Threshold(sensor, round(second * SECOND), Decimal(str(degrees)), version)


def alerts(story: list[Reading], *updates: Threshold) -> list[Jump]:
    harness = ProcessHarness(TemperatureJumps())
    harness.feed_together({"readings": story, "thresholds": list(updates)})
    return harness.end_of_input()


def rows(jumps: list[Jump]) -> list[tuple[float, float]]:
    return [(float(each.temperature), float(each.difference)) for each in jumps]


def test_jumps_of_more_than_the_threshold_alert() -> None:
    story = [reading(second, each) for second, each in enumerate(STORY)]

    found = alerts(story, threshold(0, "1.7"))

    assert rows(found) == [(24.0, 2.5), (20.0, 2.5)]
    assert {(each.threshold, each.rule_version) for each in found} == {(Decimal("1.7"), 1)}


@pytest.mark.parametrize(
    ("story", "told", "jumps"),
    [
        pytest.param([(0, 20), (1, "21.7")], (0, "1.7"), [], id="exactly the threshold is no jump"),
        pytest.param(
            [*enumerate(STORY[:5]), (4 + 3_601, STORY[5])], (0, "1.7"), [(24.0, 2.5)],
            id="after an hour of silence a reading is a first one again",
        ),
        pytest.param(
            [(second, STORY[second]) for second in (3, 0, 5, 1, 4, 2)], (0, "1.7"),
            [(24.0, 2.5), (20.0, 2.5)], id="in order of time, not of arrival",
        ),
        pytest.param(
            [(0, 20), (1, 30), (3, 35)], (2, 1), [(35.0, 5.0)],
            id="without a threshold no alert, but the temperature is remembered",
        ),
        pytest.param(
            [(0, 20), (5, 23)], (5, 2), [(23.0, 3.0)],
            id="a threshold holds for readings of its own instant",
        ),
    ],
)  # fmt: skip
def test_a_reading_is_compared_with_the_one_before_and_the_threshold_of_its_time(
    story: list[tuple[float, object]],
    told: tuple[float, object],
    jumps: list[tuple[float, float]],
) -> None:
    assert rows(alerts([reading(*each) for each in story], threshold(*told))) == jumps


def test_thresholds_are_changed_and_removed_by_their_stream() -> None:
    updates = [("sensor_1", "5.0"), ("sensor_2", "0.9"), ("sensor_3", "0.5")]
    updates += [("sensor_1", "1.2"), ("sensor_3", "0.0")]
    harness = ProcessHarness(TemperatureJumps())
    harness.feed(
        [threshold(n, each, sensor, n) for n, (sensor, each) in enumerate(updates)], "thresholds"
    )
    steps = [
        (sensor, at, each)
        for sensor in ("sensor_1", "sensor_2", "sensor_3")
        for at, each in ((9, 20), (10, 21))
    ]
    harness.feed([reading(at, each, sensor) for sensor, at, each in steps], "readings")

    # A degree is more than the 0.9 of sensor_2, not than the 1.2 of sensor_1; sensor_3 has none.
    [jump] = harness.end_of_input()
    assert (jump.sensor_id, jump.threshold, jump.rule_version) == ("sensor_2", Decimal("0.9"), 1)


def test_a_sensors_own_threshold_comes_before_that_of_all() -> None:
    story = [reading(0, 20), reading(1, 23), reading(0, 20, "sensor_2"), reading(1, 23, "sensor_2")]

    [jump] = alerts(story, threshold(0, 5), threshold(0, 2, "sensor_2", 2))

    assert (jump.sensor_id, jump.rule_version) == ("sensor_2", 2)


def test_an_alert_carries_the_version_that_held_at_its_own_time() -> None:
    story = [reading(0, 20), reading(5, 23), reading(9, 26)]

    found = alerts(story, threshold(8, 1, version=2), threshold(0, 2), threshold(4, 2))

    assert [(each.threshold, each.rule_version) for each in found] == [
        (Decimal(2), 1),
        (Decimal(1), 2),
    ]


thresholds = st.lists(
    st.builds(
        threshold,
        st.integers(0, 3 * 3_600),
        st.sampled_from([0, 1, 2, 3]),
        st.sampled_from(["sensor_1", EVERY_SENSOR]),
        st.integers(1, 9),
    ),
    max_size=4,
)


@given(
    readings(last_second=3 * 3_600, coldest=20, hottest=24),
    thresholds,
    st.randoms(use_true_random=False),
)
def test_jumps_are_those_of_the_whole_story_however_arrivals_are_cut(
    story: list[Reading], updates: list[Threshold], order: object
) -> None:
    arrivals = [InputEvent(each, "readings") for each in story]
    arrivals += [InputEvent(each, "thresholds") for each in updates]
    order.shuffle(arrivals)  # type: ignore[attr-defined]
    story = [each.event for each in arrivals if each.input == "readings"]
    told = [
        (each.event.sensor_id, each.event.event_time, each.event.degrees, each.event.version)
        for each in arrivals
        if each.input == "thresholds"
    ]

    ran = split_invariant(TemperatureJumps, arrivals, delay=timedelta(milliseconds=4 * HOUR))

    found = [
        (e.sensor_id, e.event_time, e.temperature, e.before, e.threshold, e.rule_version)
        for e in ran.outputs.main
    ]
    assert sorted(found, key=repr) == oracle.jumps(plain(story), told)
    # The thresholds are all that stays.
    assert (ran.state is None) == (not any(each[2] for each in told))
