"""P4 in event time: a temperature that rises for a second without a break raises an alert."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from hypothesis import given

from assets.readings.alerts.reading import Reading
from assets.readings.alerts.rising import Rising, RisingTemperatures
from rivermark.testing import ProcessHarness, split_invariant
from tests.oracles import alerts as oracle
from tests.unit.assets.readings.alerts.stories import plain, reading, readings

RISE = [reading(0.0, 20), reading(0.2, 21), reading(0.4, 22), reading(0.6, 22)]


def test_a_rise_of_one_second_alerts_though_an_equal_reading_lies_in_it() -> None:
    rising = ProcessHarness(RisingTemperatures())
    rising.feed(RISE)

    assert rising.advance_watermark(1_199) == []
    assert rising.advance_watermark(1_200) == [
        Rising("sensor_1", 1_200, 200, Decimal(20), Decimal(22))
    ]


def test_a_lower_reading_within_the_second_calls_the_alert_off() -> None:
    rising = ProcessHarness(RisingTemperatures())
    rising.feed([*RISE, reading(0.7, 21.5)])

    assert rising.end_of_input() == []
    assert rising.is_empty()


def test_a_true_zero_is_a_reading() -> None:
    rising = ProcessHarness(RisingTemperatures())
    rising.feed([reading(0, 0), reading(0.1, 1)])

    assert [each.event_time for each in rising.end_of_input()] == [1_100]


def test_the_next_rise_after_an_alert_starts_anew() -> None:
    rising = ProcessHarness(RisingTemperatures())
    rising.feed([reading(n / 2, 20 + n) for n in range(7)])

    assert [each.since for each in rising.end_of_input()] == [500, 2_000]


@given(readings(last_second=4, coldest=20, hottest=23, most=12))
def test_alerts_are_those_of_the_whole_story_however_arrivals_are_cut(story: list[Reading]) -> None:
    ran = split_invariant(RisingTemperatures, story, delay=timedelta(seconds=5))

    found = [(each.sensor_id, each.since, each.event_time) for each in ran.outputs.main]
    assert sorted(found) == oracle.rises(plain(story))
    assert ran.state is None
