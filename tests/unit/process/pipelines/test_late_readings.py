"""P10: counts per ten seconds, and what becomes of readings that come too late for them."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import msgspec
from hypothesis import given

from rivermark.process import Context, KeyedProcess, SideOutput
from rivermark.process.windows import Tumbling, WindowAggregate, WindowContext
from rivermark.testing import ProcessHarness
from tests.unit.process.pipelines.sensors import Reading, reading, readings
from tests.unit.process.pipelines.times import SECOND

DELAY = 5


class ReadingCount(msgspec.Struct, frozen=True):
    id: str
    end: int
    count: int
    mark: str


class CountsWithLate(WindowAggregate[Reading, int, ReadingCount]):
    """A: readings whose window is gone go aside."""

    key = "id"
    time = "timestamp"
    windows = Tumbling(timedelta(seconds=10))
    late = SideOutput("late_readings", Reading)

    def update(self, value: int | None, event: Reading) -> int:
        return (value or 0) + 1

    def on_window(self, value: int, ctx: WindowContext[ReadingCount]) -> None:
        ctx.emit(ReadingCount(ctx.key, ctx.window.end // SECOND, value, ctx.mark))


class CountsOfPunctual(CountsWithLate):
    """B: every reading behind the watermark goes aside, though its window may be open."""

    def on_event(self, event: Reading, ctx: Context[ReadingCount]) -> None:
        if ctx.is_late:
            ctx.output(self.late, event)
        else:
            super().on_event(event, ctx)


class CountsWithUpdates(CountsWithLate):
    """C: for five seconds more a late reading corrects its window's count."""

    allowed_lateness = timedelta(seconds=5)


GOLDEN = [1, 4, 12, 16, 3, 21, 5, 26]


def run(process: KeyedProcess[Reading, ReadingCount]) -> ProcessHarness[Reading, ReadingCount]:
    """One reading a batch, the watermark after each at the largest time less five seconds."""
    harness = ProcessHarness(process)
    for place, second in enumerate(GOLDEN):
        harness.feed(reading(second))
        harness.advance_watermark((max(GOLDEN[: place + 1]) - DELAY) * SECOND)
    harness.end_of_input()
    assert harness.is_empty()
    return harness


def counts(harness: ProcessHarness[Reading, ReadingCount]) -> list[tuple[int, int, str]]:
    return [(each.end, each.count, each.mark) for each in harness.outputs()]


def late(harness: ProcessHarness[Reading, ReadingCount]) -> list[int]:
    return [each.timestamp // SECOND for each in harness.side("late_readings")]


def test_without_lateness_every_window_gives_one_count() -> None:
    harness = run(CountsWithLate())

    assert counts(harness) == [(10, 2, "first"), (20, 2, "first"), (30, 2, "first")]
    assert late(harness) == [3, 5]


def test_a_strict_filter_sets_aside_what_an_open_window_would_still_take() -> None:
    open_window = ProcessHarness(CountsOfPunctual())
    open_window.advance_watermark(6 * SECOND)
    open_window.feed([reading(6), reading(7)])
    open_window.end_of_input()

    assert counts(open_window) == [(10, 1, "first")]
    assert late(open_window) == [6]
    assert late(run(CountsOfPunctual())) == [3, 5]


def test_allowed_lateness_corrects_a_count_and_marks_it() -> None:
    harness = run(CountsWithUpdates())

    assert counts(harness) == [
        (10, 2, "first"),
        (10, 3, "update"),
        (20, 2, "first"),
        (30, 2, "first"),
    ]
    assert late(harness) == [5]


def test_after_the_backfill_the_counts_are_those_of_all_readings() -> None:
    for process in (CountsWithLate(), CountsOfPunctual(), CountsWithUpdates()):
        harness = run(process)
        latest = Counter({each.end: each.count for each in harness.outputs()})
        latest.update(second // 10 * 10 + 10 for second in late(harness))
        assert latest == {10: 4, 20: 2, 30: 2}


@given(readings(last_second=40))
def test_accepted_and_late_readings_are_all_readings_in_any_batches(story: list[Reading]) -> None:
    for size in (1, 3, len(story)):
        harness = ProcessHarness(CountsWithUpdates())
        for start in range(0, len(story), size):
            harness.feed(story[start : start + size])
            newest = max(each.timestamp for each in story[: start + size])
            harness.advance_watermark(newest - DELAY * SECOND)
        harness.end_of_input()

        latest = {(each.id, each.end): each.count for each in harness.outputs()}
        assert sum(latest.values()) + len(harness.side("late_readings")) == len(story)
        assert harness.is_empty()
