"""P24: distinct events per country and hour, with an alert as soon as there are ten."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rivermark.process import Context, KeyedProcess, MapState, SideOutput
from rivermark.testing import ProcessHarness, split_invariant
from tests.unit.process.pipelines.times import HOUR, MINUTE, NOON

ENOUGH = 10


class Event(msgspec.Struct, frozen=True):
    country: str
    event_id: int
    at: int


class HourlyCount(msgspec.Struct, frozen=True):
    """A count, or its correction: the latest of a country and hour counts."""

    country: str
    end: int
    count: int


class Busy(msgspec.Struct, frozen=True):
    country: str
    end: int
    at: int
    count: int


class HourlyCounts(KeyedProcess[Event, HourlyCount]):
    """Keeps the ids of each open hour, and of closed ones for another hour; then timers clear them.

    Duplicates count once. A late event corrects its count; the alert is given once.
    """

    key = "country"
    time = "at"
    order = "event_time"
    hold = True
    enough = ENOUGH
    busy = SideOutput("busy_hours", Busy)
    late = SideOutput("late_events", Event)

    ids: MapState[int, dict[int, None]]

    def on_event(self, event: Event, ctx: Context[HourlyCount]) -> None:
        end = event.at - event.at % HOUR + HOUR
        if end + HOUR <= ctx.watermark:
            ctx.output(self.late, event)
            return
        ids = self.ids.setdefault(end, {})
        if event.event_id in ids:
            return
        ids[event.event_id] = None
        if len(ids) == self.enough:
            ctx.output(self.busy, Busy(event.country, end, event.at, len(ids)))
        if end <= ctx.watermark:
            ctx.emit(HourlyCount(event.country, end, len(ids)))
        else:
            ctx.timers.event.register(end)
        ctx.timers.event.register(end + HOUR)

    def on_timer(self, at: int, ctx: Context[HourlyCount]) -> None:
        if at in self.ids:
            ctx.emit(HourlyCount(ctx.key, at, len(self.ids[at])))
        self.ids.pop(at - HOUR, None)


class BusyFromThree(HourlyCounts):
    enough = 3


def events(country: str, *ids: int) -> list[Event]:
    return [Event(country, each, NOON + n * MINUTE) for n, each in enumerate(ids)]


def test_an_hour_counts_its_distinct_events_and_alerts_once_at_the_tenth() -> None:
    harness = ProcessHarness(HourlyCounts())
    harness.feed([*events("DE", *range(5), 3, *range(5, 12)), *events("FR", *range(9))])
    harness.advance_watermark(NOON + 30 * MINUTE)

    assert harness.side("busy_hours") == [Busy("DE", NOON + HOUR, NOON + 10 * MINUTE, 10)]
    assert harness.outputs() == []
    harness.advance_watermark(NOON + HOUR)
    assert sorted(harness.outputs(), key=lambda each: each.country) == [
        HourlyCount("DE", NOON + HOUR, 12),
        HourlyCount("FR", NOON + HOUR, 9),
    ]
    harness.end_of_input()
    assert harness.is_empty()


def test_a_late_event_corrects_the_count_and_does_not_repeat_the_alert() -> None:
    harness = ProcessHarness(HourlyCounts())
    harness.feed(events("DE", *range(10)))
    harness.advance_watermark(NOON + HOUR)
    harness.feed(Event("DE", 99, NOON + MINUTE))
    harness.feed(Event("DE", 99, NOON + MINUTE))

    assert [each.count for each in harness.outputs()] == [10, 11]
    assert len(harness.side("busy_hours")) == 1


def test_an_event_for_an_hour_that_is_gone_goes_aside() -> None:
    harness = ProcessHarness(HourlyCounts())
    harness.advance_watermark(NOON + 2 * HOUR)
    harness.feed(Event("DE", 1, NOON))

    assert harness.side("late_events") == [Event("DE", 1, NOON)]
    assert harness.is_empty()


stories = st.lists(
    st.builds(
        Event,
        st.sampled_from(["DE", "FR"]),
        st.integers(0, 5),
        st.integers(0, 24).map(lambda n: NOON + n * 5 * MINUTE),
    ),
    min_size=1,
    max_size=10,
)


@given(stories)
def test_counts_and_alerts_do_not_depend_on_how_arrivals_are_cut(story: list[Event]) -> None:
    ran = split_invariant(BusyFromThree, story, delay=timedelta(hours=3))

    ids: dict[tuple[str, int], set[int]] = defaultdict(set)
    for each in story:
        ids[each.country, each.at // HOUR * HOUR + HOUR].add(each.event_id)
    assert {(each.country, each.end): each.count for each in ran.outputs.main} == {
        key: len(each) for key, each in ids.items()
    }
    busy = ran.outputs.sides["busy_hours"]
    assert sorted((each.country, each.end) for each in busy) == sorted(
        key for key, each in ids.items() if len(each) >= 3
    )
    assert ran.state is None
