"""P15 and P16: the driver with the most tips of each hour; late fares beside."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermark.process import Context, KeyedProcess, MapState, SideOutput
from rivermark.process.windows import Tumbling, WindowAggregate, WindowContext
from rivermark.testing import ProcessHarness, split_invariant
from simulator.taxi.fares import fares
from tests.unit.process.pipelines.times import HOUR, NOON


class Fare(msgspec.Struct, frozen=True):
    driver: int
    at: datetime
    tip: Decimal


class Tips(msgspec.Struct, frozen=True):
    """Tips of a driver in the hour that ends at `end` (not included); `last` is inside it."""

    end: int
    driver: int
    tips: Decimal

    @property
    def last(self) -> int:
        return self.end - 1


class TipsPerHour(WindowAggregate[Fare, Decimal, Tips]):
    """Step 1 by the window engine."""

    key = "driver"
    time = "at"
    windows = Tumbling(timedelta(hours=1))
    late = SideOutput("late_fares", Fare)

    def update(self, value: Decimal | None, event: Fare) -> Decimal:
        return (value or Decimal(0)) + event.tip

    def on_window(self, value: Decimal, ctx: WindowContext[Tips]) -> None:
        ctx.emit(Tips(ctx.window.end, ctx.key, value))


class TipsByHand(KeyedProcess[Fare, Tips]):
    """Step 1 by hand: a sum for each open hour of a driver, and a timer at its end that clears it.

    A fare at or before the watermark is late and goes aside, for its hour may have been told.
    """

    key = "driver"
    time = "at"
    hold = False
    late = SideOutput("late_fares", Fare)

    sums: MapState[int, Decimal]

    def on_event(self, event: Fare, ctx: Context[Tips]) -> None:
        if ctx.is_late:
            ctx.output(self.late, event)
            return
        end = ctx.timestamp - ctx.timestamp % HOUR + HOUR
        self.sums[end] = self.sums.get(end, Decimal(0)) + event.tip
        ctx.timers.event.register(end)

    def on_timer(self, at: int, ctx: Context[Tips]) -> None:
        ctx.emit(Tips(at, ctx.key, self.sums.pop(at)))


class BestOfHour(WindowAggregate[Tips, Tips, Tips]):
    """Step 2, a window after a window: the largest sum of an hour; of equals the lowest driver."""

    key = "end"
    time = "end"
    windows = Tumbling(timedelta(hours=1), offset=timedelta(milliseconds=1))
    late = None

    def update(self, value: Tips | None, event: Tips) -> Tips:
        return event if value is None or self.beats(event, value) else value

    def beats(self, one: Tips, other: Tips) -> bool:
        return (one.tips, -one.driver) > (other.tips, -other.driver)

    def on_window(self, value: Tips, ctx: WindowContext[Tips]) -> None:
        ctx.emit(value)


def fare(driver: int, minute: int, tip: int | str) -> Fare:
    return Fare(
        driver, datetime(2020, 1, 1, 12, tzinfo=UTC) + minute * timedelta(minutes=1), Decimal(tip)
    )


def best(process: KeyedProcess[Fare, Tips], story: list[Fare]) -> list[Tips]:
    """Both steps; the sums of an hour reach the second step when the first gives them."""
    first, second = ProcessHarness(process), ProcessHarness(BestOfHour())
    first.feed(story)
    second.feed(first.end_of_input())
    second.end_of_input()
    assert first.is_empty()
    assert second.is_empty()
    return second.outputs()


BOTH = pytest.mark.parametrize("process", [TipsPerHour, TipsByHand])
PUBLISHED = [
    fare(1, 0, 1),
    fare(1, 15, 5),
    fare(1, 90, 10),
    fare(2, 90, 20),
    fare(3, 70, 0),
    fare(4, 70, 0),
    fare(4, 80, 1),
    fare(5, 100, 10),
]


@BOTH
def test_the_best_driver_of_each_hour_is_the_published_one(
    process: type[KeyedProcess[Fare, Tips]],
) -> None:
    assert best(process(), PUBLISHED) == [
        Tips(NOON + HOUR, 1, Decimal(6)),
        Tips(NOON + 2 * HOUR, 2, Decimal(20)),
    ]


@BOTH
def test_the_generated_fares_have_the_published_winners(
    process: type[KeyedProcess[Fare, Tips]],
) -> None:
    end = datetime(2020, 1, 1, 18, tzinfo=UTC)
    story = [
        Fare(each.driver_id, each.event_time, each.tip)
        for each in fares(1, 1_100)
        if each.event_time < end
    ]

    winners = [(89, 76), (197, 71), (118, 83), (119, 81), (195, 73), (72, 123)]
    assert best(process(), story) == [
        Tips(NOON + hour * HOUR, 2_013_000_000 + driver, Decimal(tips))
        for hour, (driver, tips) in enumerate(winners, 1)
    ]


def test_equal_sums_go_to_the_lowest_driver() -> None:
    assert best(TipsPerHour(), [fare(9, 1, 5), fare(7, 2, 5), fare(8, 3, 5)]) == [
        Tips(NOON + HOUR, 7, Decimal(5))
    ]


@BOTH
def test_late_fares_go_aside_and_nothing_is_lost(
    process: type[KeyedProcess[Fare, Tips]],
) -> None:
    harness = ProcessHarness(process())
    harness.feed(fare(1, 10, 3))
    harness.advance_watermark(NOON + HOUR)
    harness.feed([fare(1, 59, 4), fare(1, 61, 5)])
    harness.end_of_input()

    assert harness.side("late_fares") == [fare(1, 59, 4)]
    assert [each.tips for each in harness.outputs()] == [Decimal(3), Decimal(5)]
    assert harness.is_empty()


stories = st.lists(
    st.builds(fare, st.integers(1, 3), st.integers(0, 240), st.decimals(0, 60, places=2).map(str)),
    min_size=1,
    max_size=9,
)


@given(stories)
def test_both_ways_agree_however_arrivals_are_cut(story: list[Fare]) -> None:
    delay = timedelta(hours=1)
    by_window = split_invariant(TipsPerHour, story, delay=delay)
    by_hand = split_invariant(TipsByHand, story, delay=delay)

    def ordered(rows: list[Tips]) -> list[tuple[int, int, Decimal]]:
        return sorted((each.end, each.driver, each.tips) for each in rows)

    late = [each.event for each in by_window.late]
    sums: dict[tuple[int, int], Decimal] = defaultdict(Decimal)
    for each in story:
        if each in late:
            late.remove(each)
            continue
        at = int(each.at.timestamp()) * 1_000
        sums[at // HOUR * HOUR + HOUR, each.driver] += each.tip
    assert ordered(by_window.outputs.main) == ordered(by_hand.outputs.main)
    assert ordered(by_hand.outputs.main) == [(*key, tips) for key, tips in sorted(sums.items())]
    assert by_window.state is None
    assert by_hand.state is None
