"""Windows against the plainest reckoning of them, however the arrivals are cut into batches."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rivermark.process.windows import (
    Sessions,
    Sliding,
    Tumbling,
    WindowContext,
)
from rivermark.testing import split_invariant
from tests.unit.process.windows.counts import Counted, Counts, Listed, Lists, Reading

GAP = 10
DELAY = timedelta(seconds=20)

stories = st.lists(
    st.builds(
        Reading,
        sensor=st.sampled_from("ab"),
        at=st.integers(0, 90).map(lambda second: second * 1_000),
        value=st.integers(0, 9),
    ),
    min_size=1,
    max_size=9,
)


class InTens(Counts):
    windows = Tumbling(timedelta(seconds=10))


class InSlides(Counts):
    windows = Sliding(timedelta(seconds=20), timedelta(seconds=5))


class InSessions(Counts):
    windows = Sessions(timedelta(seconds=GAP))


class WithUpdates(Counts):
    windows = Tumbling(timedelta(seconds=10))
    allowed_lateness = timedelta(seconds=30)


class ListedSessions(Lists):
    windows = Sessions(timedelta(seconds=GAP))
    order = "event_time"
    hold = True

    def on_window(self, events: list[Reading], ctx: WindowContext[Listed]) -> None:
        ctx.emit(Listed(ctx.key, tuple(each.at for each in events), ctx.mark))


def accepted(story: list[Reading], late: list[Reading]) -> list[Reading]:
    left = Counter(story)
    left.subtract(Counter(late))
    return list(left.elements())


def counted(rows: list[Counted]) -> dict[tuple[str, int], int]:
    found = {(each.sensor, each.end): each.count for each in rows}
    assert len(found) == len(rows)
    return found


def sessions_of(events: list[Reading]) -> dict[str, list[list[int]]]:
    """Times of each sensor's events, cut where more than a gap lies between them."""
    found: dict[str, list[list[int]]] = defaultdict(list)
    for sensor in {each.sensor for each in events}:
        times = sorted(each.at for each in events if each.sensor == sensor)
        found[sensor] = [[times[0]]]
        for before, after in pairwise(times):
            if after - before > GAP * 1_000:
                found[sensor].append([])
            found[sensor][-1].append(after)
    return found


@given(stories)
def test_tumbling_counts_are_those_of_a_grouping(story: list[Reading]) -> None:
    ran = split_invariant(InTens, story, delay=DELAY)
    events = accepted(story, [each.event for each in ran.late])

    expected = Counter((each.sensor, each.at // 10_000 * 10 + 10) for each in events)
    assert counted(ran.outputs.main) == expected
    assert ran.outputs.sides["late_readings"] == []
    assert ran.state is None


@given(stories)
def test_sliding_counts_are_those_of_every_window_around_an_event(story: list[Reading]) -> None:
    ran = split_invariant(InSlides, story, delay=DELAY)
    events = accepted(story, [each.event for each in ran.late])

    expected = Counter(
        (each.sensor, start + 20)
        for each in events
        for start in range(-20, 95, 5)
        if start * 1_000 <= each.at < (start + 20) * 1_000
    )
    assert counted(ran.outputs.main) == expected
    assert ran.state is None


@given(stories)
def test_sessions_are_cut_where_more_than_a_gap_lies_between_events(story: list[Reading]) -> None:
    ran = split_invariant(InSessions, story, delay=DELAY)
    events = accepted(story, [each.event for each in ran.late])

    assert counted(ran.outputs.main) == {
        (sensor, times[-1] // 1_000 + GAP): len(times)
        for sensor, sessions in sessions_of(events).items()
        for times in sessions
    }
    assert ran.state is None


@given(stories)
def test_held_sessions_list_their_events_in_order_of_time(story: list[Reading]) -> None:
    ran = split_invariant(ListedSessions, story, delay=DELAY)
    events = accepted(story, [each.event for each in ran.late])

    assert sorted((each.sensor, each.values) for each in ran.outputs.main) == sorted(
        (sensor, tuple(times))
        for sensor, sessions in sessions_of(events).items()
        for times in sessions
    )


@given(stories)
def test_the_last_result_of_a_window_is_its_count_whatever_was_late(story: list[Reading]) -> None:
    ran = split_invariant(WithUpdates, story, delay=DELAY)
    events = accepted(story, [each.event for each in ran.late])

    latest = {(each.sensor, each.end): each.count for each in ran.outputs.main}
    assert latest == Counter((each.sensor, each.at // 10_000 * 10 + 10) for each in events)
    assert ran.state is None
