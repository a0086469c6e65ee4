"""P35: numbers above zero pass, the others are counted; a gauge shows the watermark."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rivermark.process import Context, KeyedProcess
from rivermark.testing import ProcessHarness, split_invariant


class Number(msgspec.Struct, frozen=True):
    n: int
    at: int = 0


class PositiveNumbers(KeyedProcess[Number, Number]):
    """Keeps nothing."""

    key = "n"
    time = "at"

    def on_event(self, event: Number, ctx: Context[Number]) -> None:
        ctx.gauge("watermark", ctx.watermark)
        if event.n > 0:
            ctx.emit(event)
        else:
            ctx.count("dropped_elements")


def test_dropped_numbers_are_counted_and_the_watermark_is_shown() -> None:
    positive = ProcessHarness(PositiveNumbers())
    positive.advance_watermark(7)
    positive.feed([Number(n, 8) for n in (1, 0, -3, 2)])
    positive.advance_watermark(9)
    positive.feed(Number(5, 10))

    assert [each.n for each in positive.outputs()] == [1, 2, 5]
    assert positive.counters() == {"dropped_elements": 2}
    assert positive.gauges() == {"watermark": 9}
    assert positive.is_empty()


@given(st.lists(st.integers(-5, 5).map(Number), min_size=1, max_size=9))
def test_passed_and_dropped_are_all_however_arrivals_are_cut(story: list[Number]) -> None:
    ran = split_invariant(PositiveNumbers, story, delay=timedelta(seconds=1), in_order=True)

    dropped = ran.outputs.counters.get("dropped_elements", 0)
    assert len(ran.outputs.main) + dropped + len(ran.late) == len(story)
