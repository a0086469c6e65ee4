"""The order in which the generated world's rides reach the platform when nothing goes wrong.

The rule is that of `TaxiRideGenerator` in apache/flink-training: rides come in blocks of five. A
block first releases every END that is due by the block's latest start, in order of time, then its
five STARTs, shuffled; so a few ENDs come before their START. Fares come in order of ride id, which
is how `fares` yields them.
"""

import heapq
from collections.abc import Iterator
from datetime import datetime
from itertools import chain, islice
from typing import Final

from simulator.taxi.clock import TRAINING_CLOCK, RideClock
from simulator.taxi.java_random import JavaRandom
from simulator.taxi.rides import RideEvent, rides

BLOCK: Final = 5


def rides_in_blocks(
    last: int | None = None, clock: RideClock = TRAINING_CLOCK
) -> Iterator[list[RideEvent]]:
    """The events of rides 1 to `last` in order of arrival, block by block; None is without end.

    ENDs at the same instant come by ride id; the source leaves their order to a heap. After the
    last block the remaining ENDs follow as one more block, in order of time.
    """
    ends = _DueEnds()
    coming = rides(1, last, clock)
    shuffled = 0
    while block := list(islice(coming, BLOCK)):
        for ride in block:
            ends.add(ride.end)
        due = list(ends.until(max(ride.start.start_time for ride in block)))
        starts = [ride.start for ride in block]
        JavaRandom(shuffled).shuffle(starts)
        yield due + starts
        shuffled += BLOCK
    yield list(ends.until(None))


def rides_as_they_arrive(
    last: int | None = None, clock: RideClock = TRAINING_CLOCK
) -> Iterator[RideEvent]:
    """The events of rides 1 to `last` in order of arrival, one by one."""
    return chain.from_iterable(rides_in_blocks(last, clock))


def rides_by_event_time(
    first: int = 1, last: int | None = None, clock: RideClock = TRAINING_CLOCK
) -> Iterator[RideEvent]:
    """The events of rides `first` to `last` in order of event time, an END after a START."""
    ends = _DueEnds()
    for ride in rides(first, last, clock):
        yield from ends.before(ride.start.start_time)
        ends.add(ride.end)
        yield ride.start
    yield from ends.until(None)


class _DueEnds:
    """ENDs that wait for their time."""

    def __init__(self) -> None:
        self._waiting: list[tuple[datetime, int, RideEvent]] = []

    def add(self, end: RideEvent) -> None:
        heapq.heappush(self._waiting, (end.event_time, end.ride_id, end))

    def until(self, time: datetime | None) -> Iterator[RideEvent]:
        """Those due at `time` or before it, all of them if it is None; they wait no longer."""
        while self._waiting and (time is None or self._waiting[0][0] <= time):
            yield heapq.heappop(self._waiting)[2]

    def before(self, time: datetime) -> Iterator[RideEvent]:
        """Those due before `time`; they wait no longer."""
        while self._waiting and self._waiting[0][0] < time:
            yield heapq.heappop(self._waiting)[2]
