"""P7: two readings of a sensor more than 20 degrees apart within one minute raise an alert."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given

from rivermark.process import Context, KeyedProcess, ListState
from rivermark.testing import ProcessHarness, split_invariant
from tests.unit.process.pipelines.sensors import Reading, reading, readings
from tests.unit.process.pipelines.times import MINUTE


class FarApart(msgspec.Struct, frozen=True):
    id: str
    at: int
    temperature: float
    against: float


class ReadingsFarApart(KeyedProcess[Reading, FarApart]):
    """Keeps the readings of the last minute; a timer a minute after each lets it go.

    Exactly a minute is within it; exactly 20 degrees are not more than 20. One alert per reading,
    against the kept one that differs most (of equals the earliest).
    """

    key = "id"
    time = "timestamp"
    order = "event_time"
    hold = True

    kept: ListState[Reading]

    def on_event(self, event: Reading, ctx: Context[FarApart]) -> None:
        def difference(other: Reading) -> float:
            return abs(event.temperature - other.temperature)

        extreme = max(self.kept, key=difference, default=None)
        if extreme is not None and difference(extreme) > 20:
            ctx.emit(FarApart(event.id, event.timestamp, event.temperature, extreme.temperature))
        self.kept.append(event)
        ctx.timers.event.register(event.timestamp + MINUTE)

    def on_timer(self, at: int, ctx: Context[FarApart]) -> None:
        self.kept[:] = [each for each in self.kept if each.timestamp + MINUTE > at]


@pytest.mark.parametrize(
    ("story", "alerts"),
    [
        ([reading(0, 50), reading(30, 65), reading(59, 71)], [(71, 50)]),
        ([reading(120, 71), reading(181, 95)], []),
        ([reading(0, 50), reading(60, 71)], [(71, 50)]),
        ([reading(0, 50), reading(60, 70)], []),
    ],
    ids=["the one that differs most", "after a minute", "exactly a minute", "exactly 20 degrees"],
)
def test_a_reading_alerts_against_the_one_of_its_minute_that_differs_most(
    story: list[Reading], alerts: list[tuple[float, float]]
) -> None:
    harness = ProcessHarness(ReadingsFarApart())
    harness.feed(story)
    harness.end_of_input()

    assert harness.is_empty()
    assert [(each.temperature, each.against) for each in harness.outputs()] == alerts


@given(readings(last_second=180))
def test_alerts_are_those_of_all_pairs_however_arrivals_are_cut(story: list[Reading]) -> None:
    ran = split_invariant(ReadingsFarApart, story, delay=timedelta(minutes=4))

    ordered = sorted(story, key=lambda each: each.timestamp)
    expected = [
        each
        for place, each in enumerate(ordered)
        if any(
            other.id == each.id
            and each.timestamp - other.timestamp <= MINUTE
            and abs(each.temperature - other.temperature) > 20
            for other in ordered[:place]
        )
    ]
    assert [(each.at, each.temperature) for each in ran.outputs.main] == [
        (each.timestamp, each.temperature) for each in expected
    ]
    assert ran.state is None
