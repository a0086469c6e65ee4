"""P14: the longest ride from each start cell, told each time it is beaten."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.taxi.world.city import grid_cell, in_new_york
from assets.taxi.world.rides import RideEvent, rides
from rivermark.process import Context, KeyedProcess, ProcessHarness, ValueState, split_invariant
from tests.unit.process.pipelines.times import MINUTE, NOON


class FinishedRide(msgspec.Struct, frozen=True, array_like=True):
    ride_id: int
    cell: int
    minutes: int
    ended_at: int


class LongestRide(msgspec.Struct, frozen=True, array_like=True):
    cell: int
    minutes: int
    ride_id: int


class LongestRidePerCell(KeyedProcess[FinishedRide, LongestRide]):
    """Keeps the longest ride of each cell for good: there are at most 100,000 cells.

    A ride of equal length does not beat the one before it, in order of time.
    """

    key = "cell"
    time = "ended_at"
    order = "event_time"
    hold = True
    again_for_every_ride = False

    longest: ValueState[LongestRide]

    def on_event(self, event: FinishedRide, ctx: Context[LongestRide]) -> None:
        longest = self.longest.value
        if longest is None or event.minutes > longest.minutes:
            longest = LongestRide(event.cell, event.minutes, event.ride_id)
            self.longest.value = longest
            ctx.emit(longest)
        elif self.again_for_every_ride:
            ctx.emit(longest)


class LongestRideAfterEveryRide(LongestRidePerCell):
    """As a rolling maximum gives it: a row for every ride."""

    again_for_every_ride = True


def finished(ride_id: int, minutes: int, cell: int = 50_797) -> FinishedRide:
    return FinishedRide(ride_id, cell, minutes, NOON + ride_id * MINUTE)


def test_a_row_appears_when_a_new_maximum_is_reached() -> None:
    lengths = [6, 5, 8, 8, 11, 3, 12]
    longest = ProcessHarness(LongestRidePerCell())
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
    return in_new_york(ride.start_lon, ride.start_lat) and in_new_york(ride.end_lon, ride.end_lat)


@pytest.mark.parametrize(
    ("cleansed", "cells", "best"),
    [(False, 326, LongestRide(4_254, 125, 1_630)), (True, 322, LongestRide(5_998, 121, 1_620))],
)
def test_the_first_two_thousand_rides_have_the_published_longest(
    cleansed: bool, cells: int, best: LongestRide
) -> None:
    ends = [each.end for each in rides(1, 2_000) if not cleansed or inside(each.end)]
    longest = ProcessHarness(LongestRidePerCell())
    longest.feed(
        [
            FinishedRide(
                each.ride_id,
                grid_cell(each.start_lon, each.start_lat),
                (each.event_time - each.start_time) // timedelta(minutes=1),
                int(each.event_time.timestamp() * 1_000),
            )
            for each in ends
        ]
    )
    longest.end_of_input()

    kept = {each.cell: each for each in longest.outputs()}
    assert len(kept) == cells
    assert max(kept.values(), key=lambda each: each.minutes) == best


stories = st.lists(
    st.builds(finished, st.integers(0, 40), st.integers(0, 9), st.sampled_from([1, 2])),
    min_size=1,
    max_size=9,
    unique_by=lambda each: each.ride_id,
)


@given(stories)
@settings(max_examples=40, deadline=None)
def test_maxima_do_not_depend_on_how_arrivals_are_cut(story: list[FinishedRide]) -> None:
    ran = split_invariant(LongestRidePerCell, story, delay=timedelta(minutes=60))

    for cell in {each.cell for each in story}:
        rows = [each.minutes for each in ran.outputs.main if each.cell == cell]
        assert rows == sorted(set(rows))
        assert rows[-1] == max(each.minutes for each in story if each.cell == cell)
