"""P8 (a): heat followed by smoke in an area."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermark.process import Context, SideOutput
from rivermark.process.patterns import Match, Pattern, PatternProcess
from rivermark.testing import ProcessHarness, split_invariant
from tests.unit.process.pipelines.times import MINUTE, SECOND, accepted

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
def test_fires_do_not_depend_on_how_arrivals_are_cut(story: list[Sign]) -> None:
    ran = split_invariant(HeatThenSmoke, story, delay=timedelta(minutes=20))

    found = [(each.area, each.heat_at, each.smoke_at) for each in ran.outputs.main]
    assert sorted(found) == fires_of(accepted(story, ran.late))
    assert ran.state is None


def fires_of(story: list[Sign]) -> list[tuple[str, int, int]]:
    """Area and times: smoke at most ten minutes after the latest heat, which counts once."""
    found = []
    latest: dict[str, int | None] = {}
    for each in sorted(story, key=lambda each: each.at):
        heat_at = latest.get(each.area)
        if each.kind == "heat":
            latest[each.area] = each.at
        elif heat_at is not None and each.at - heat_at <= 10 * MINUTE:
            found.append((each.area, heat_at, each.at))
            latest[each.area] = None
    return sorted(found)
