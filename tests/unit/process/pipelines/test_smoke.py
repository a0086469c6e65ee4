"""P8: heat followed by smoke in an area; and hot readings while the smoke level is high."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rivermark.process import (
    Arrival,
    Broadcast,
    BroadcastState,
    Context,
    Input,
    KeyedProcess,
    ProcessHarness,
    SideOutput,
    split_invariant,
)
from rivermark.process.patterns import Match, Pattern, PatternProcess
from tests.unit.process.pipelines.sensors import Reading, reading, readings
from tests.unit.process.pipelines.times import MINUTE, SECOND

TEN_MINUTES = timedelta(minutes=10)


class Sign(msgspec.Struct, frozen=True):
    area: str
    at: int
    kind: Literal["heat", "smoke"]


class Fire(msgspec.Struct, frozen=True):
    area: str
    heat_at: int
    smoke_at: int


def is_heat(event: Sign, earlier: Match[Sign]) -> bool:
    return event.kind == "heat"


def is_smoke(event: Sign, earlier: Match[Sign]) -> bool:
    return event.kind == "smoke"


class HeatThenSmoke(PatternProcess[Sign, Fire]):
    """Smoke at most ten minutes after the latest heat of its area.

    A later heat takes the place of an earlier one. Heat without smoke goes to the time-outs.
    """

    key = "area"
    time = "at"
    after_match = "skip_past_last"
    pattern = (
        Pattern.begin("heat", is_heat)
        .not_followed_by(is_heat)
        .followed_by("smoke", is_smoke)
        .within(TEN_MINUTES)
    )
    without_smoke = SideOutput("heat_without_smoke", Sign)

    def on_match(self, match: Match[Sign], ctx: Context[Fire]) -> None:
        ctx.emit(Fire(ctx.key, match.start, match.end))

    def on_timeout(self, match: Match[Sign], ctx: Context[Fire]) -> None:
        ctx.output(self.without_smoke, match.one("heat"))


def heat(minute: float) -> Sign:
    return Sign("north", round(minute * MINUTE), "heat")


def smoke(minute: float) -> Sign:
    return Sign("north", round(minute * MINUTE), "smoke")


@pytest.mark.parametrize(
    ("story", "fires"),
    [
        ([heat(0), smoke(9 + 59 / 60)], [(0, 599)]),
        ([heat(0), smoke(10)], [(0, 600)]),
        ([heat(0), smoke(10 + 1 / 60)], []),
        ([heat(0), heat(5), smoke(12)], [(300, 720)]),
        ([smoke(0), heat(5)], []),
    ],
)
def test_smoke_within_ten_minutes_of_the_latest_heat_is_a_fire(
    story: list[Sign], fires: list[tuple[int, int]]
) -> None:
    harness = ProcessHarness(HeatThenSmoke())
    harness.feed(story)
    harness.end_of_input()

    found = [(each.heat_at // SECOND, each.smoke_at // SECOND) for each in harness.outputs()]
    assert found == fires
    assert harness.is_empty()


def test_heat_without_smoke_is_a_time_out() -> None:
    harness = ProcessHarness(HeatThenSmoke())
    harness.feed([heat(0), smoke(11)])
    harness.end_of_input()

    assert harness.side("heat_without_smoke") == [heat(0)]


signs = st.lists(
    st.builds(
        Sign,
        area=st.sampled_from(["north", "south"]),
        at=st.integers(0, 60).map(lambda minute: minute * MINUTE),
        kind=st.sampled_from(["heat", "smoke"]),
    ),
    min_size=1,
    max_size=9,
)


@given(signs)
@settings(max_examples=60, deadline=None)
def test_fires_do_not_depend_on_how_arrivals_are_cut(story: list[Sign]) -> None:
    ran = split_invariant(HeatThenSmoke, story, delay=timedelta(minutes=20))

    for fire in ran.outputs.main:
        assert 0 <= fire.smoke_at - fire.heat_at <= 10 * MINUTE
    assert ran.state is None


class Level(msgspec.Struct, frozen=True):
    level: Literal["High", "Low"]
    at: int


class ForestFires(KeyedProcess[Reading, Reading]):
    """Hot readings while the smoke level, one for all sensors, is high: an as-of join.

    A level holds from its time until the next one's; before the first it is low. Keeps the level.
    """

    order = "event_time"
    hold = True

    levels = Broadcast(Level, time="at")
    readings = Input(Reading, key="id", time="timestamp")

    smoke: BroadcastState[str, str]

    def on_levels(self, event: Level, ctx: Context[Reading]) -> None:
        self.smoke["level"] = event.level

    def on_readings(self, event: Reading, ctx: Context[Reading]) -> None:
        if self.smoke.get("level") == "High" and event.temperature > 100:
            ctx.emit(event)


def test_a_hot_reading_counts_while_the_level_of_its_time_is_high() -> None:
    harness = ProcessHarness(ForestFires())
    harness.feed([reading(second, 101) for second in (5, 1, 3, 2)], "readings")
    harness.feed([reading(2, 100)], "readings")
    harness.feed([Level("Low", 3 * SECOND), Level("High", 2 * SECOND)], "levels")
    harness.end_of_input()

    assert harness.outputs() == [reading(2, 101)]


@given(
    readings(last_second=20, coldest=95, hottest=105, most=6),
    st.lists(
        st.builds(
            Level, st.sampled_from(["High", "Low"]), st.integers(0, 20).map(lambda s: s * SECOND)
        ),
        max_size=3,
        unique_by=lambda each: each.at,
    ),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None)
def test_fires_are_those_of_the_level_as_of_each_reading(
    story: list[Reading], levels: list[Level], order: object
) -> None:
    arrivals = [Arrival(each, "readings") for each in story]
    arrivals += [Arrival(each, "levels") for each in levels]
    order.shuffle(arrivals)  # type: ignore[attr-defined]
    ran = split_invariant(ForestFires, arrivals, delay=timedelta(seconds=30))

    def level_at(at: int) -> str:
        known = [each for each in levels if each.at <= at]
        return max(known, key=lambda each: each.at).level if known else "Low"

    expected = [
        each for each in story if each.temperature > 100 and level_at(each.timestamp) == "High"
    ]
    assert sorted(ran.outputs.main, key=repr) == sorted(expected, key=repr)
    assert (ran.state is None) == (not levels)
