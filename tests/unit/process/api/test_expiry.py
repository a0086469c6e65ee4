"""State with a life (TTL): unseen once it is over, and gone from storage when the clock says so."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rivermark.process import TTL, Context, KeyedProcess, ListState, MapState, ValueState
from rivermark.testing import ProcessHarness
from tests.unit.process.readings import HOUR, NOON, Note, Reading, reading

AN_HOUR = TTL(timedelta(hours=1))
A_MINUTE = TTL(timedelta(minutes=1), clock="processing")


class Remembers(KeyedProcess[Reading, Note]):
    key = "sensor"
    time = "at"

    last: ValueState[int] = ValueState(ttl=AN_HOUR)
    values: ListState[int] = ListState(ttl=AN_HOUR)
    by_value: MapState[int, int] = MapState(ttl=AN_HOUR)

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        ctx.emit(Note(f"{self.last.value} {list(self.values)} {dict(self.by_value)}"))
        self.last.value = event.value
        self.values.append(event.value)
        self.by_value[event.value] = event.at - NOON


@pytest.fixture
def remembers() -> ProcessHarness[Reading, Note]:
    return ProcessHarness(Remembers())


def test_an_event_sees_what_was_written_less_than_its_life_before(
    remembers: ProcessHarness[Reading, Note],
) -> None:
    remembers.feed(reading("a", NOON, 1))

    assert remembers.feed(reading("a", NOON + HOUR - 1, 2)) == [Note("1 [1] {1: 0}")]


def test_an_event_does_not_see_what_is_exactly_a_life_old_though_it_is_still_stored(
    remembers: ProcessHarness[Reading, Note],
) -> None:
    remembers.feed(reading("a", NOON, 1))

    assert remembers.feed(reading("a", NOON + HOUR, 2)) == [Note("None [] {}")]


def test_elements_of_lists_and_maps_end_one_by_one(
    remembers: ProcessHarness[Reading, Note],
) -> None:
    remembers.feed(reading("a", NOON, 1))
    remembers.feed(reading("a", NOON + HOUR // 2, 2))

    seen = remembers.feed(reading("a", NOON + HOUR, 3))
    assert seen == [Note("2 [2] {2: 1800000}")]


def test_a_write_begins_a_new_life(remembers: ProcessHarness[Reading, Note]) -> None:
    for step in range(5):
        remembers.feed(reading("a", NOON + step * HOUR // 2, 7))
        remembers.advance_watermark(NOON + step * HOUR // 2)

    assert remembers.outputs()[-1].text.startswith("7 [7]")


def test_the_watermark_clears_what_nobody_can_see_any_more(
    remembers: ProcessHarness[Reading, Note],
) -> None:
    remembers.feed(reading("a", NOON, 1))
    remembers.feed(reading("a", NOON + HOUR // 2, 2))
    remembers.advance_watermark(NOON + HOUR)
    assert remembers.state_of("a") == {
        "last": 2,
        "values": [2],
        "by_value": {2: HOUR // 2},
    }

    remembers.advance_watermark(NOON + HOUR + HOUR // 2)
    assert remembers.is_empty()


def test_a_late_event_lives_by_the_watermark(remembers: ProcessHarness[Reading, Note]) -> None:
    remembers.advance_watermark(NOON + 3 * HOUR)
    remembers.feed(reading("a", NOON, 1))
    assert not remembers.is_empty()

    remembers.advance_watermark(NOON + 4 * HOUR)
    assert remembers.is_empty()


def test_state_that_its_owner_clears_is_not_kept_for_its_life() -> None:
    class Clears(Remembers):
        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            super().on_event(event, ctx)
            if event.value == 0:
                self.last.clear()
                self.values.clear()
                self.by_value.clear()

    clears = ProcessHarness(Clears())
    clears.feed(reading("a", NOON, 1))
    clears.feed(reading("a", NOON + 1, 0))

    assert clears.is_empty()


def test_a_timer_sees_what_lives_at_its_own_time_however_far_the_watermark_jumps() -> None:
    class Reports(Remembers):
        hold = False

        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            self.last.value = event.value
            for after in (HOUR - 1, HOUR):
                ctx.timers.event.register(event.at + after)

        def on_timer(self, at: int, ctx: Context[Note]) -> None:
            ctx.emit(Note(f"{at - NOON} {self.last.value}"))

    reports = ProcessHarness(Reports())
    reports.feed(reading("a", NOON, 5))

    assert reports.advance_watermark(NOON + 24 * HOUR) == [
        Note(f"{HOUR - 1} 5"),
        Note(f"{HOUR} None"),
    ]
    assert reports.is_empty()


def test_a_life_in_processing_time_goes_by_the_wall_clock() -> None:
    class Recent(KeyedProcess[Reading, Note]):
        key = "sensor"
        time = "at"
        last: ValueState[int] = ValueState(ttl=A_MINUTE)

        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            ctx.emit(Note(str(self.last.value)))
            self.last.value = event.value

    recent = ProcessHarness(Recent(), processing_time=NOON)
    recent.feed(reading("a", 1, 1))
    recent.advance_processing_time(NOON + 59_999)
    recent.feed(reading("a", 2, 2))
    recent.advance_processing_time(NOON + 59_999 + 60_000)
    assert recent.is_empty()

    recent.feed(reading("a", 3, 3))
    assert recent.outputs() == [Note("None"), Note("1"), Note("None")]
