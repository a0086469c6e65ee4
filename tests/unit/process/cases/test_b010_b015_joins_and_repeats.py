"""Public bug reports about joins, repeats and empty keys, told to process functions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from rivermark.process import BEGINNING, END_OF_TIME, KeyedProcess, Limits, ProcessError
from rivermark.process.api.inputs import Arrivals
from rivermark.process.engine.engine import Engine
from rivermark.process.errors import StateTooLarge
from rivermark.testing import ProcessHarness
from tests.unit.process.pipelines.rides_and_fares import WAIT, Fare, Pair, Ride, RidesWithFares
from tests.unit.process.pipelines.test_duplicates import Event, FirstOfEachKey
from tests.unit.process.pipelines.times import HOUR, MINUTE, NOON, SECOND

TEN_DAYS = 240 * HOUR


def test_b010_a_pair_is_never_followed_by_its_ride_alone() -> None:
    harness = ProcessHarness(RidesWithFares())
    harness.feed_together({"rides": [Ride(1, NOON)], "fares": [Fare(1, NOON)]})
    for minute in (3, 20):
        harness.advance_watermark(NOON + minute * MINUTE)
    harness.end_of_input()

    assert harness.outputs() == [Pair(Ride(1, NOON), Fare(1, NOON))]
    assert harness.side("unmatched_rides") == harness.side("unmatched_fares") == []


def test_b012_a_ride_that_waits_is_to_be_seen_and_the_end_of_input_tells_it() -> None:
    harness = ProcessHarness(RidesWithFares())
    harness.feed(Ride(5, NOON), "rides")
    harness.advance_watermark(NOON)

    assert list(harness.all_keys()) == [5]
    assert harness.timers_of(5).event == (NOON + WAIT,)
    harness.end_of_input()
    assert harness.side("unmatched_rides") == [Ride(5, NOON)]
    assert harness.is_empty()


def run_days(
    process: KeyedProcess[Ride | Fare, Pair] | KeyedProcess[Event, Event],
    batches: Iterable[list[Arrivals]],
    delay: timedelta,
) -> tuple[int, list[int]]:
    """Rows given, and the number of keys in state after each batch."""
    engine: Engine[Any, Any] = Engine(process)
    engine.start()
    bucket, watermark, rows, sizes = engine.open(None), BEGINNING, 0, []
    for batch in batches:
        outputs = engine.advance(bucket, batch, watermark, 0)
        rows += len(outputs.main)
        newest = max(max(each.times or [0]) for each in batch)
        watermark = newest - delay // timedelta(milliseconds=1)
        bucket = engine.open(engine.close(bucket))
        sizes.append(len(bucket.records))
    # What is held until the watermark comes in the end.
    rows += len(engine.advance(bucket, [], END_OF_TIME, 0).main)
    return rows, sizes


def test_b013_a_join_with_a_bound_in_time_keeps_no_more_than_that() -> None:
    pairs, a_batch = 25_000, 625
    step = TEN_DAYS // pairs

    def batches() -> Iterable[list[Arrivals]]:
        declared = RidesWithFares.declaration
        for start in range(0, pairs, a_batch):
            times = [(n, NOON + n * step) for n in range(start, start + a_batch)]
            # Every tenth fare is lost.
            yield [
                declared.input("rides").arrivals([Ride(n, at) for n, at in times]),
                declared.input("fares").arrivals([Fare(n, at) for n, at in times if n % 10]),
            ]

    rows, sizes = run_days(RidesWithFares(), batches(), timedelta(minutes=1))

    assert rows == pairs * 9 // 10
    # What waits is the unmatched tenth of a batch, which is six hours, and of the wait before it.
    assert max(sizes) <= (a_batch + (WAIT + MINUTE) // step) // 10 + 1


def test_b013_state_past_a_set_limit_is_refused_with_its_keys() -> None:
    harness = ProcessHarness(RidesWithFares(), limits=Limits(bucket=10_000))

    with pytest.raises(StateTooLarge, match="largest"):
        harness.feed([Ride(n, NOON) for n in range(10_000)], "rides")


def test_b014_ids_are_kept_for_about_their_horizon() -> None:
    ids, a_batch = 50_000, 500
    step = TEN_DAYS // ids

    def batches() -> Iterable[list[Arrivals]]:
        spec = FirstOfEachKey.declaration.input(None)
        for start in range(0, ids, a_batch):
            events = [Event(f"{n}", NOON + n * step, n) for n in range(start, start + a_batch)]
            yield [spec.arrivals(events)]

    rows, sizes = run_days(FirstOfEachKey(), batches(), timedelta(minutes=5))

    assert rows == ids
    an_hour = HOUR // step
    # The watermark derives from the batch before, so one batch and the delay come on top.
    assert max(sizes) <= an_hour + 2 * a_batch


def test_b015_an_end_that_is_sent_again_with_another_time_is_a_repeat() -> None:
    harness = ProcessHarness(FirstOfEachKey())
    for at in (NOON + 30 * MINUTE, NOON + 30 * MINUTE + 3 * SECOND):
        harness.feed(Event("42 END", at))

    assert len(harness.outputs()) == 1
    assert harness.counters() == {"duplicates": 1}


def test_b089_an_event_without_key_is_an_error_that_names_it_and_never_shares_state() -> None:
    harness = ProcessHarness(FirstOfEachKey())

    with pytest.raises(ProcessError, match=r"event Event\(key=None.*the event has no key"):
        harness.feed(Event(None, NOON))  # type: ignore[arg-type]
    assert harness.is_empty()
