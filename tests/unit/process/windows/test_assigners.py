"""Which windows an event belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermark.model.errors import DeclarationError
from rivermark.process.windows import (
    Assigner,
    Counting,
    Global,
    OnValue,
    Sessions,
    Sliding,
    Tumbling,
    Window,
    WindowAggregate,
    WindowContext,
)
from rivermark.testing import ProcessHarness
from tests.unit.process.windows.counts import (
    SECOND,
    Counted,
    Counts,
    Listed,
    Lists,
    Reading,
    at,
    ends,
)

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


def test_a_tumbling_window_includes_its_start_and_not_its_end() -> None:
    windows = Tumbling(timedelta(seconds=10))

    assert windows.assign(None, 0) == (Window(0, 10_000),)
    assert windows.assign(None, 9_999) == (Window(0, 10_000),)
    assert windows.assign(None, 10_000) == (Window(10_000, 20_000),)
    assert windows.assign(None, -1) == (Window(-10_000, 0),)


def test_an_offset_shifts_windows() -> None:
    windows = Tumbling(timedelta(hours=1), offset=timedelta(minutes=15))

    assert windows.assign(None, 20 * MINUTE) == (Window(15 * MINUTE, 75 * MINUTE),)
    assert windows.assign(None, 10 * MINUTE) == (Window(-45 * MINUTE, 15 * MINUTE),)


def test_a_slide_larger_than_the_size_leaves_events_out_that_are_not_late() -> None:
    class Sampled(Counts):
        windows = Sliding(timedelta(seconds=10), timedelta(seconds=60))

    sampled = ProcessHarness(Sampled())
    sampled.feed(at(5, 30, 65))
    sampled.end_of_input()

    assert ends(sampled.outputs()) == [(10, 1), (70, 1)]
    assert sampled.side("late_readings") == []
    assert sampled.is_empty()


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**7), st.integers(1, 10**7))
def test_the_windows_of_an_event_are_those_that_contain_it(
    moment: int, size: int, slide: int
) -> None:
    slide = max(slide, size // 50 + 1)
    windows = Sliding(timedelta(milliseconds=size), timedelta(milliseconds=slide))
    found = list(windows.assign(None, moment))

    assert all(each.start <= moment < each.end for each in found)
    assert all(each.start % slide == 0 and each.end - each.start == size for each in found)
    assert len(set(found)) == len(found)
    assert len(found) in (size // slide, size // slide + 1)


def test_the_gap_may_depend_on_the_event() -> None:
    def gap(event: Reading) -> timedelta:
        return timedelta(seconds=event.value)

    class Dynamic(Counts):
        windows = Sessions(gap)

    dynamic = ProcessHarness(Dynamic())
    dynamic.feed([Reading("a", 0, 10), Reading("a", 8_000, 1), Reading("a", 20_000, 1)])
    dynamic.end_of_input()

    assert ends(dynamic.outputs()) == [(10, 2), (21, 1)]


def test_a_merged_session_names_the_results_that_it_replaces() -> None:
    class Replacing(Lists):
        windows = Sessions(timedelta(seconds=10))
        allowed_lateness = timedelta(seconds=60)

        def on_window(self, events: list[Reading], ctx: WindowContext[Listed]) -> None:
            gone = tuple(each.end // SECOND for each in ctx.replaced)
            ctx.emit(Listed(ctx.key, gone, ctx.mark))

    replacing = ProcessHarness(Replacing())
    replacing.feed(at(0, 15))
    replacing.advance_watermark(30_000)
    replacing.feed(at(8))

    assert replacing.outputs() == [
        Listed("a", (), "first"),
        Listed("a", (), "first"),
        Listed("a", (10, 25), "update"),
    ]
    replacing.end_of_input()
    assert replacing.is_empty()


def test_a_time_out_clears_what_overlapping_count_windows_have_shown_already() -> None:
    class TimesOut(Lists):
        windows = Counting(4, 2, timeout=timedelta(seconds=60))

    times_out = ProcessHarness(TimesOut())
    times_out.feed(at(*range(6)))
    times_out.advance_watermark(64_999)
    assert not times_out.is_empty()

    assert times_out.advance_watermark(65_000) == []
    assert times_out.is_empty()


def test_a_global_window_needs_a_trigger_and_never_fires_by_itself() -> None:
    class Whole(Lists):
        windows = Global()

    whole = ProcessHarness(Whole())
    whole.feed(at(1, 2, 3))
    whole.end_of_input()
    assert whole.outputs() == []

    class Until(Lists):
        windows = Global()
        trigger = OnValue(lambda event: event.value == 3, purge=True)

    until = ProcessHarness(Until())
    until.feed(at(1, 2, 3, 4))
    assert until.outputs() == [Listed("a", (1, 2, 3))]


def test_windows_of_ones_own_are_cut_by_a_few_lines() -> None:
    class HalfMinutes(Assigner):
        def assign(self, event: Any, at: int) -> Iterable[Window]:
            start = at - at % 30_000
            return (Window(start, start + 30_000),)

    class Own(Counts):
        windows = HalfMinutes()

    class Same(Counts):
        windows = Tumbling(timedelta(seconds=30))

    story = at(1, 29.999, 30, 59, 60, 100)
    results = []
    for process in (Own(), Same()):
        harness = ProcessHarness(process)
        harness.feed(story)
        results.append(harness.end_of_input())

    assert (
        results[0]
        == results[1]
        == [
            Counted("a", 30, 2),
            Counted("a", 60, 2),
            Counted("a", 90, 1),
            Counted("a", 120, 1),
        ]
    )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Tumbling(timedelta(0)),
        lambda: Sliding(timedelta(seconds=1), timedelta(seconds=-1)),
        lambda: Sessions(timedelta(0)),
        lambda: Counting(0),
        lambda: Tumbling(timedelta(microseconds=1)),
    ],
)
def test_windows_of_no_size_are_refused(wrong: Any) -> None:
    with pytest.raises(DeclarationError):
        wrong()


def test_windows_must_say_what_becomes_of_late_events() -> None:
    with pytest.raises(DeclarationError, match="does not say what becomes of late events"):

        class Silent(WindowAggregate[Reading, int, Counted]):
            key = "sensor"
            time = "at"
            windows = Tumbling(timedelta(seconds=1))
