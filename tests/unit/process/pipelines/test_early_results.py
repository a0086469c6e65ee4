"""P11: counts of thirty seconds, with an early result at most once a second."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from hypothesis import given

from rivermark.process import SideOutput
from rivermark.process.windows import (
    AnyOf,
    AtEnd,
    Every,
    Tumbling,
    WindowAggregate,
    WindowContext,
)
from rivermark.testing import ProcessHarness, split_invariant
from tests.unit.process.pipelines.sensors import Reading, reading, readings
from tests.unit.process.pipelines.times import SECOND, accepted


class SoFar(msgspec.Struct, frozen=True):
    id: str
    end: int
    evaluated_at: int
    count: int
    is_final: bool


class EarlyCounts(WindowAggregate[Reading, int, SoFar]):
    """Counts of half a minute; held until the watermark, so that early results are exact."""

    key = "id"
    time = "timestamp"
    order = "event_time"
    hold = True
    windows = Tumbling(timedelta(seconds=30))
    trigger = AnyOf(AtEnd(), Every(timedelta(seconds=1)))
    late = SideOutput("late_readings", Reading)

    def update(self, value: int | None, event: Reading) -> int:
        return (value or 0) + 1

    def on_window(self, value: int, ctx: WindowContext[SoFar]) -> None:
        final = ctx.mark != "early"
        ctx.emit(SoFar(ctx.key, ctx.window.end, ctx.timestamp, value, final))


def test_early_results_follow_a_second_apart_and_the_last_one_is_final() -> None:
    harness = ProcessHarness(EarlyCounts())
    harness.feed([reading(second) for second in (0.25, 0.5, 1.5, 7, 29.5)])
    harness.end_of_input()

    assert [(each.evaluated_at, each.count, each.is_final) for each in harness.outputs()] == [
        (1_250, 2, False),
        (2_250, 3, False),
        (7_250, 4, False),
        (30_000, 5, True),
    ]
    assert harness.is_empty()


@given(readings(last_second=70))
def test_early_results_do_not_depend_on_how_arrivals_are_cut(story: list[Reading]) -> None:
    ran = split_invariant(EarlyCounts, story, delay=timedelta(seconds=30))

    found = [(e.id, e.end, e.evaluated_at, e.count, e.is_final) for e in ran.outputs.main]
    assert sorted(found) == results_of(accepted(story, ran.late))
    assert ran.state is None


def results_of(story: list[Reading]) -> list[tuple[str, int, int, int, bool]]:
    """Each second after a window's first reading its count, where it has grown; and its last."""
    found = []
    windows: dict[tuple[str, int], list[int]] = {}
    for each in story:
        end = (each.timestamp // (30 * SECOND) + 1) * 30 * SECOND
        windows.setdefault((each.id, end), []).append(each.timestamp)
    for (sensor, end), times in windows.items():
        shown = 0
        for at in range(min(times) + SECOND, end, SECOND):
            count = sum(time <= at for time in times)
            if count > shown:
                found.append((sensor, end, at, count, False))
                shown = count
        found.append((sensor, end, end, len(times), True))
    return sorted(found)
