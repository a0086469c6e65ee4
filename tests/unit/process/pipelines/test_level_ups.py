"""P26: a team that pops 500 bubbles within a minute rises one level, whenever the pops arrive."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import ClassVar

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rivermark.process import SideOutput
from rivermark.process.windows import (
    Assigner,
    Tumbling,
    WindowAggregate,
    WindowContext,
)
from rivermark.testing import ProcessHarness, split_invariant
from tests.unit.process.pipelines.times import MINUTE, NOON, SECOND

ENOUGH = 500


class Pops(msgspec.Struct, frozen=True):
    team: str
    player: str
    bubbles: int
    at: int


class LevelUp(msgspec.Struct, frozen=True):
    team: str
    minute: int
    bubbles: int


class LevelUps(WindowAggregate[Pops, int, LevelUp]):
    """Sums a team's pops per minute of event time; a late update never gives a second reward."""

    key = "team"
    time = "at"
    windows: ClassVar[Assigner] = Tumbling(timedelta(minutes=1))
    allowed_lateness = timedelta(minutes=5)
    late = SideOutput("late_pops", Pops)

    def update(self, value: int | None, event: Pops) -> int:
        return (value or 0) + event.bubbles

    def on_window(self, value: int, ctx: WindowContext[LevelUp]) -> None:
        if value >= ENOUGH and not ctx.state.get("rewarded"):
            ctx.state["rewarded"] = True
            ctx.emit(LevelUp(ctx.key, ctx.window.start, value))


class LevelUpsByTheClock(LevelUps):
    """By the minute of arrival: what a game that is offline for a while loses."""

    windows = Tumbling(timedelta(minutes=1), clock="processing")


ALICE = Pops("reds", "Alice", 260, NOON + 10 * SECOND)
BOB = Pops("reds", "Bob", 260, NOON + 40 * SECOND)


def test_pops_made_in_a_tunnel_count_for_the_minute_in_which_they_were_made() -> None:
    game = ProcessHarness(LevelUps())
    game.feed(ALICE)
    game.advance_watermark(NOON - 4 * MINUTE)
    game.feed(BOB)
    game.end_of_input()

    assert game.outputs() == [LevelUp("reds", NOON, 520)]
    assert game.is_empty()


def test_by_the_clock_the_reward_is_lost() -> None:
    game = ProcessHarness(LevelUpsByTheClock(), processing_time=NOON + 10 * SECOND)
    game.feed(ALICE)
    game.advance_processing_time(NOON + 3 * MINUTE)
    game.feed(BOB)
    game.end_of_input()

    assert game.outputs() == []
    assert game.is_empty()


def test_late_pops_may_bring_the_reward_but_not_a_second_one() -> None:
    game = ProcessHarness(LevelUps())
    game.feed(ALICE)
    game.advance_watermark(NOON + 2 * MINUTE)
    assert game.outputs() == []

    game.feed(BOB)
    game.feed(BOB)
    assert game.outputs() == [LevelUp("reds", NOON, 520)]


pops = st.lists(
    st.builds(
        Pops,
        st.sampled_from(["reds", "blues"]),
        st.just("Alice"),
        st.sampled_from([100, 250, 499, 500]),
        st.integers(0, 18).map(lambda n: NOON + n * 10 * SECOND),
    ),
    min_size=1,
    max_size=9,
)


@given(pops)
def test_rewards_do_not_depend_on_how_arrivals_are_cut(story: list[Pops]) -> None:
    ran = split_invariant(LevelUps, story, delay=timedelta(minutes=4))

    sums: Counter[tuple[str, int]] = Counter()
    for each in story:
        sums[each.team, each.at // MINUTE * MINUTE] += each.bubbles
    assert sorted((each.team, each.minute) for each in ran.outputs.main) == sorted(
        key for key, total in sums.items() if total >= ENOUGH
    )
    assert ran.state is None
