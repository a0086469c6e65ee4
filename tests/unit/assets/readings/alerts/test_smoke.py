"""P8 (b): hot readings while the smoke level of their own time is high."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from assets.readings.alerts.reading import Reading
from assets.readings.alerts.smoke import SmokeAlert, SmokeAlerts, SmokeLevel
from rivermark.testing import InputEvent, ProcessHarness, split_invariant
from tests.oracles import alerts as oracle
from tests.unit.assets.readings.alerts.stories import SECOND, plain, reading, readings


def level(second: int, value: str) -> SmokeLevel:
    return SmokeLevel(second * SECOND, "High" if value == "High" else "Low")


def test_a_hot_reading_alerts_while_the_level_of_its_time_is_high() -> None:
    harness = ProcessHarness(SmokeAlerts())
    harness.feed([reading(second, 101) for second in (5, 1, 3, 2, 2)], "readings")
    harness.feed([reading(2, 100)], "readings")
    harness.feed([level(3, "Low"), level(2, "High"), level(0, "Low")], "levels")

    assert harness.end_of_input() == [SmokeAlert("sensor_1", 2_000, Decimal(101), 2_000)]


def test_an_alert_names_the_level_of_its_own_time() -> None:
    harness = ProcessHarness(SmokeAlerts())
    harness.feed([level(second, "High") for second in (1, 2, 5)], "levels")
    harness.feed(reading(4, 101), "readings")

    assert [each.level_time for each in harness.end_of_input()] == [2_000]


levels = st.lists(
    st.builds(level, st.integers(0, 20), st.sampled_from(["High", "Low"])), max_size=4
)


@given(
    readings(last_second=20, coldest=98, hottest=103, most=6),
    levels,
    st.randoms(use_true_random=False),
)
def test_alerts_are_those_of_the_level_as_of_each_reading(
    story: list[Reading], told: list[SmokeLevel], order: object
) -> None:
    arrivals = [InputEvent(each, "readings") for each in story]
    arrivals += [InputEvent(each, "levels") for each in told]
    order.shuffle(arrivals)  # type: ignore[attr-defined]
    in_order = [each.event for each in arrivals if each.input == "levels"]

    ran = split_invariant(SmokeAlerts, arrivals, delay=timedelta(seconds=30))

    found = [(each.sensor_id, each.event_time, each.level_time) for each in ran.outputs.main]
    assert sorted(found) == oracle.smoke(
        plain(story), [(each.event_time, each.level) for each in in_order]
    )
    assert (ran.state is None) == (not told)
