"""Joins by process function: a ride meets its fare, waits for it, or meets all of its hour."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rivermark.process import Context, Input
from rivermark.process.windows import Tumbling, WindowContext, WindowProcess
from rivermark.testing import InputEvent, ProcessHarness, assert_rows_equal, split_invariant
from tests.unit.process.pipelines.rides_and_fares import WAIT, Fare, Pair, Ride, RidesWithFares
from tests.unit.process.pipelines.times import HOUR, MINUTE, NOON, SECOND

Story = list[Ride | Fare]


def feed(harness: ProcessHarness[Ride | Fare, Pair], *events: Ride | Fare) -> None:
    for each in events:
        harness.feed(each, "rides" if isinstance(each, Ride) else "fares")


def test_b031_what_waits_too_long_is_told_once_and_forgotten() -> None:
    harness = ProcessHarness(RidesWithFares())
    feed(harness, Ride(3, NOON), Fare(3, NOON + SECOND), Ride(4, NOON), Fare(5, NOON))
    harness.advance_watermark(NOON + WAIT + SECOND)
    harness.end_of_input()

    assert [each.ride.ride_id for each in harness.outputs()] == [3]
    assert harness.side("unmatched_rides") == [Ride(4, NOON)]
    assert harness.side("unmatched_fares") == [Fare(5, NOON)]
    assert harness.is_empty()


def test_a_partner_that_comes_after_the_wait_is_unmatched_itself() -> None:
    harness = ProcessHarness(RidesWithFares())
    feed(harness, Ride(1, NOON))
    harness.advance_watermark(NOON + WAIT)
    feed(harness, Fare(1, NOON + WAIT + SECOND))
    harness.end_of_input()

    assert harness.outputs() == []
    assert len(harness.side("unmatched_rides")) == len(harness.side("unmatched_fares")) == 1


@st.composite
def stories(draw: st.DrawFn, apart: tuple[int, ...] = (0,)) -> Story:
    """Rides, and fares so many minutes later; some lose their partner."""
    story: Story = []
    for ride_id in range(draw(st.integers(1, 5))):
        at = NOON + draw(st.integers(0, 40)) * MINUTE
        paid = at + draw(st.sampled_from(apart)) * MINUTE
        parts = draw(st.sampled_from(["both", "both", "ride", "fare"]))
        if parts != "fare":
            story.append(Ride(ride_id, at))
        if parts != "ride":
            story.append(Fare(ride_id, paid))
    return draw(st.permutations(story))


def arrivals(story: Story) -> list[InputEvent]:
    return [InputEvent(each, "rides" if isinstance(each, Ride) else "fares") for each in story]


@given(stories(apart=(0, 5, 9, 10, 11, 60)))
def test_pairs_and_unmatched_sides_do_not_depend_on_how_arrivals_are_cut(story: Story) -> None:
    ran = split_invariant(RidesWithFares, arrivals(story), delay=timedelta(hours=2))

    rides = {each.ride_id: each.at for each in story if isinstance(each, Ride)}
    fares = {each.ride_id: each.at for each in story if isinstance(each, Fare)}
    pairs = {n for n in rides.keys() & fares.keys() if fares[n] - rides[n] <= WAIT}
    assert {each.ride.ride_id for each in ran.outputs.main} == pairs
    assert {each.ride_id for each in ran.outputs.sides["unmatched_rides"]} == rides.keys() - pairs
    assert {each.ride_id for each in ran.outputs.sides["unmatched_fares"]} == fares.keys() - pairs
    assert ran.state is None


class Hour(msgspec.Struct, frozen=True):
    ride_id: int
    end: int
    rides: int
    fares: int


class RidesAndFaresOfHour(WindowProcess[Ride | Fare, Hour]):
    """Both sides' events of an hour together (co-group), where one side is empty too."""

    rides = Input(Ride, key="ride_id", time="at")
    fares = Input(Fare, key="ride_id", time="at")
    windows = Tumbling(timedelta(hours=1))
    late = None

    def on_rides(self, event: Ride, ctx: Context[Hour]) -> None:
        self.on_event(event, ctx)

    def on_fares(self, event: Fare, ctx: Context[Hour]) -> None:
        self.on_event(event, ctx)

    def on_window(self, events: list[Ride | Fare], ctx: WindowContext[Hour]) -> None:
        rides = sum(isinstance(each, Ride) for each in events)
        ctx.emit(Hour(ctx.key, ctx.window.end, rides, len(events) - rides))


def test_a_window_sees_both_sides_of_its_key_once() -> None:
    harness = ProcessHarness(RidesAndFaresOfHour())
    harness.feed_together(
        {
            "rides": [Ride(1, NOON), Ride(1, NOON + 5), Ride(2, NOON + HOUR)],
            "fares": [Fare(1, NOON + 1), Fare(3, NOON)],
        }
    )
    harness.end_of_input()

    assert sorted(harness.outputs(), key=lambda each: each.ride_id) == [
        Hour(1, NOON + HOUR, 2, 1),
        Hour(2, NOON + 2 * HOUR, 1, 0),
        Hour(3, NOON + HOUR, 0, 1),
    ]
    assert harness.is_empty()


@given(stories())
def test_co_groups_hold_both_sides_of_their_hour_however_arrivals_are_cut(story: Story) -> None:
    ran = split_invariant(RidesAndFaresOfHour, arrivals(story), delay=timedelta(hours=2))

    groups = {(each.ride_id, each.at // HOUR * HOUR + HOUR) for each in story}
    expected = [
        Hour(
            key,
            end,
            *(
                sum(isinstance(e, side) and e.ride_id == key for e in story)
                for side in (Ride, Fare)
            ),
        )
        for key, end in groups
    ]
    assert_rows_equal(ran.outputs.main, expected)
    assert ran.state is None
