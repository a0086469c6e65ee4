"""Rounds of messages: what is read together, of several partitions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from rivermark.ingest.source.kafka.pieces import count, rounds
from rivermark.ingest.source.kafka.position import Gaps, Partition, Position, Range, positions

NOW = 2_000


def cuts_of(times: Mapping[int, list[int]], most: int) -> list[dict[Partition, int]]:
    """The rounds of partitions whose messages have these timestamps."""
    parts = {Partition("t", n): sorted(own) for n, own in times.items()}

    def at(millis: int) -> dict[Partition, int]:
        offsets = {p: bisect_left(own, millis) for p, own in parts.items()}
        return {p: n for p, n in offsets.items() if n < len(parts[p])}

    start = dict.fromkeys(parts, 0)
    end = {p: len(own) for p, own in parts.items()}
    return [dict(cut) for cut, _ in rounds(start, end, most, at, NOW)]


@given(
    st.dictionaries(
        st.integers(0, 3), st.lists(st.integers(0, NOW + 5), max_size=30), min_size=1, max_size=4
    ),
    st.integers(1, 20),
)
def test_rounds_read_each_message_once_and_never_more_than_the_most(
    times: dict[int, list[int]], most: int
) -> None:
    before = dict.fromkeys([Partition("t", n) for n in times], 0)
    for cut in cuts_of(times, most):
        assert 0 < count(before, cut) <= most
        assert all(cut[p] >= before[p] for p in cut)
        before = cut
    assert before == {Partition("t", n): len(own) for n, own in times.items()}


def test_a_partition_whose_messages_are_younger_waits_for_the_others() -> None:
    cuts = cuts_of({0: [*range(100)], 1: [*range(90, 100)]}, 30)

    first, second = Partition("t", 0), Partition("t", 1)
    assert all(cut[second] == 0 for cut in cuts if cut[first] <= 90)
    assert all(cut[second] == cut[first] - 90 for cut in cuts if cut[first] > 90)


def test_messages_of_one_timestamp_are_shared_out() -> None:
    cuts = cuts_of({0: [5] * 30, 1: [5] * 10}, 8)

    assert [*cuts[0].values()] == [6, 2]
    assert len(cuts) == 5


def read(start: int, end: int, **more: object) -> Range:
    """A range of partition 0."""
    return Range(topic="t", partition=0, start=start, end=end, round=0, topic_id="x", **more)  # type: ignore[arg-type]


def test_reading_goes_on_behind_the_farthest_range_whatever_order_they_come_in() -> None:
    partition = Partition("t", 0)
    assert positions([read(10, 20), read(0, 10)])[partition] == Position(0, 20, "x")
    again = read(20, 20, lost="topic_made_again", again=True)
    assert positions([again, read(0, 20)])[partition] == Position(1, 0, None)
    younger = read(0, 5, generation=1)
    assert positions([younger, again, read(0, 20)])[partition] == Position(1, 5, "x")
    cut_off = read(20, 20, lost="offsets_cut_off", again=True, resume=12)
    assert positions([read(0, 20), cut_off])[partition] == Position(1, 12, "x")
    assert Range.of_path(cut_off.path) == cut_off
    assert read(0, 5).name != younger.name


def test_a_planned_range_is_read_without_what_was_accepted_as_lost() -> None:
    gaps = Gaps()
    for lost in (read(0, 4, lost="offsets_deleted"), read(4, 6, lost="offsets_deleted")):
        gaps.add(lost)
    gaps.add(read(8, 10, lost="offsets_cut_off"))

    def left(planned: Range) -> tuple[int, int]:
        return gaps.without(planned).start, gaps.without(planned).end

    assert left(read(0, 10)) == (6, 8)
    assert left(read(0, 3)) == (3, 3)
    assert left(read(12, 15)) == (12, 15)
    assert left(read(0, 10, generation=1)) == (0, 10)
