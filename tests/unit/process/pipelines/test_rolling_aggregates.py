"""Rolling aggregates: every event gives its key's new value."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rivermark.process import Context, KeyedProcess, ValueState
from rivermark.testing import ProcessHarness, split_invariant


class Triple(msgspec.Struct, frozen=True):
    key: int
    value: int
    other: int


class Rolled(msgspec.Struct, frozen=True):
    """Sum, least and greatest value so far, and the first event that had the greatest."""

    key: int
    total: int
    least: int
    greatest: int
    of_greatest: int


class RollingAggregates(KeyedProcess[Triple, Rolled]):
    """Keeps four numbers a key, for good: for a bounded set of keys."""

    key = "key"
    rolled: ValueState[Rolled]

    def on_event(self, event: Triple, ctx: Context[Rolled]) -> None:
        before = self.rolled.value
        if before is None:
            rolled = Rolled(event.key, event.value, event.value, event.value, event.other)
        else:
            beats = event.value > before.greatest
            rolled = Rolled(
                event.key,
                before.total + event.value,
                min(before.least, event.value),
                max(before.greatest, event.value),
                event.other if beats else before.of_greatest,
            )
        self.rolled.value = rolled
        ctx.emit(rolled)


def test_every_event_gives_the_new_sum_of_its_key() -> None:
    harness = ProcessHarness(RollingAggregates())
    harness.feed([Triple(1, 2, 2), Triple(2, 3, 1), Triple(2, 2, 4), Triple(1, 5, 3)])

    assert harness.outputs() == [
        Rolled(1, 2, 2, 2, 2),
        Rolled(2, 3, 3, 3, 1),
        Rolled(2, 5, 2, 3, 1),
        Rolled(1, 7, 2, 5, 3),
    ]


@given(
    st.lists(
        st.builds(Triple, st.integers(1, 2), st.integers(-9, 9), st.integers(0, 9)), min_size=1
    )
)
def test_every_value_is_that_of_the_events_so_far_in_any_batches(story: list[Triple]) -> None:
    ran = split_invariant(RollingAggregates, story, delay=timedelta(seconds=1), in_order=True)

    for place, rolled in enumerate(ran.outputs.main):
        values = [each.value for each in story[: place + 1] if each.key == rolled.key]
        assert (rolled.total, rolled.least, rolled.greatest) == (
            sum(values),
            min(values),
            max(values),
        )
