"""P29: running sums of even and odd numbers survive a crash without counting twice."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rivermark.process import Context, KeyedProcess, ValueState
from rivermark.testing import ProcessHarness, split_invariant


class Number(msgspec.Struct, frozen=True):
    n: int


class Sum(msgspec.Struct, frozen=True):
    parity: int
    total: int


def parity(event: Number) -> int:
    """0 for even numbers, 1 for odd ones."""
    return event.n % 2


class EvenAndOddSums(KeyedProcess[Number, Sum]):
    """Keeps one sum for each of two keys, for good."""

    key = staticmethod(parity)
    total: ValueState[int]

    def on_event(self, event: Number, ctx: Context[Sum]) -> None:
        self.total.value = self.total.get(0) + event.n
        ctx.emit(Sum(ctx.key, self.total.get(0)))


def totals(harness: ProcessHarness[Number, Sum]) -> tuple[int | None, int | None]:
    return harness.state_of(0)["total"], harness.state_of(1)["total"]


def numbers(first: int, last: int) -> list[Number]:
    return [Number(n) for n in range(first, last + 1)]


def test_after_a_restart_the_replayed_numbers_count_once() -> None:
    before = ProcessHarness(EvenAndOddSums())
    before.feed(numbers(1, 5))
    checkpoint = before.state
    assert totals(before) == (6, 9)
    before.feed(numbers(6, 7))
    assert totals(before) == (12, 16)

    after = ProcessHarness(EvenAndOddSums())
    after.restore(checkpoint)
    assert totals(after) == (6, 9)
    assert after.feed(numbers(6, 7)) == [Sum(0, 12), Sum(1, 16)]


@given(st.lists(st.integers(0, 50).map(Number), min_size=1, max_size=9))
def test_sums_do_not_depend_on_how_arrivals_are_cut(story: list[Number]) -> None:
    ran = split_invariant(EvenAndOddSums, story, delay=timedelta(seconds=1), in_order=True)

    latest = {each.parity: each.total for each in ran.outputs.main}
    for odd in (0, 1):
        expected = sum(each.n for each in story if each.n % 2 == odd)
        assert latest.get(odd, 0) == expected
