"""P14: the longest ride from each start cell, told each time it is beaten."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.taxi.longest_rides import DAY, FinishedRide, LongestRides, LongestRidesOfDay
from rivermark.testing import ProcessHarness, split_invariant
from simulator.taxi.rides import RideEvent, rides
from tests.oracles.rides import cell, in_box
from tests.unit.process.pipelines.times import MINUTE, NOON


class LongestRideAfterEveryRide(LongestRides):
    """As a rolling maximum gives it: a row for every ride."""

    again_for_every_ride = True


def finished(ride_id: int, minutes: int, cell: int = 50_797) -> FinishedRide:
    ended = NOON + ride_id * MINUTE
    return FinishedRide(ride_id, cell, ended - minutes * MINUTE, ended)


def test_a_row_appears_when_a_new_maximum_is_reached() -> None:
    lengths = [6, 5, 8, 8, 11, 3, 12]
    longest = ProcessHarness(LongestRides())
    longest.feed([finished(n, minutes) for n, minutes in enumerate(lengths)])
    longest.end_of_input()

    assert [each.minutes for each in longest.outputs()] == [6, 8, 11, 12]
    assert longest.outputs()[1].ride_id == 2


def test_a_rolling_maximum_gives_a_row_for_every_ride() -> None:
    rolling = ProcessHarness(LongestRideAfterEveryRide())
    rolling.feed([finished(n, minutes) for n, minutes in enumerate([6, 5, 8])])
    rolling.end_of_input()

    assert [each.minutes for each in rolling.outputs()] == [6, 6, 8]


def inside(ride: RideEvent) -> bool:
    return in_box(ride.start_lon, ride.start_lat) and in_box(ride.end_lon, ride.end_lat)


@pytest.mark.parametrize(
    ("cleansed", "cells", "best"),
    [(False, 326, (4_254, 125, 1_630)), (True, 322, (5_998, 121, 1_620))],
)
def test_the_first_two_thousand_rides_have_the_published_longest(
    cleansed: bool, cells: int, best: tuple[int, int, int]
) -> None:
    ends = [each.end for each in rides(1, 2_000) if not cleansed or inside(each.end)]
    longest = ProcessHarness(LongestRides())
    longest.feed(
        [
            FinishedRide(
                each.ride_id,
                cell(each.start_lon, each.start_lat),
                int(each.start_time.timestamp() * 1_000),
                int(each.event_time.timestamp() * 1_000),
            )
            for each in ends
        ]
    )
    longest.end_of_input()

    kept = {each.start_cell: each for each in longest.outputs()}
    assert len(kept) == cells
    most = max(kept.values(), key=lambda each: each.minutes)
    assert (most.start_cell, most.minutes, most.ride_id) == best


stories = st.lists(
    st.builds(finished, st.integers(0, 40), st.integers(0, 9), st.sampled_from([1, 2])),
    min_size=1,
    max_size=9,
    unique_by=lambda each: each.ride_id,
)


@given(stories)
def test_maxima_do_not_depend_on_how_arrivals_are_cut(story: list[FinishedRide]) -> None:
    ran = split_invariant(LongestRides, story, delay=timedelta(minutes=60))

    assert [(each.start_cell, each.ride_id) for each in ran.outputs.main] == records(story)


def records(story: list[FinishedRide]) -> list[tuple[int, int]]:
    """Cell and ride of each END whose ride is longer than all that ended there before."""
    found = []
    lengths: dict[int, list[int]] = {}
    for each in sorted(story, key=lambda each: each.event_time):
        before = lengths.setdefault(each.start_cell, [])
        minutes = (each.event_time - each.start_time) // MINUTE
        if all(minutes > other for other in before):
            found.append((each.start_cell, each.ride_id))
        before.append(minutes)
    return found


@given(stories, st.lists(st.integers(0, 2), min_size=9, max_size=9))
def test_by_the_day_every_day_begins_anew_and_leaves_nothing(
    story: list[FinishedRide], days: list[int]
) -> None:
    spread = [
        FinishedRide(e.ride_id, e.start_cell, e.start_time + n * DAY, e.event_time + n * DAY)
        for e, n in zip(story, days, strict=False)
    ]
    ran = split_invariant(LongestRidesOfDay, spread, delay=timedelta(days=4))

    expected = [
        (day, *row)
        for day in range(3)
        for row in records([e for e in spread if (e.event_time - NOON) // DAY == day])
    ]
    found = [((e.event_time - NOON) // DAY, e.start_cell, e.ride_id) for e in ran.outputs.main]
    assert found == expected
    assert ran.state is None
