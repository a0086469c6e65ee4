"""What happens to events on their way: delay, lateness, loss and repetition, at declared rates."""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Generic, Literal, Protocol, TypeVar

Kind = Literal["fresh", "late", "duplicate", "lost"]

# SplitMix64: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014.
GOLDEN_GAMMA: Final = 0x9E3779B97F4A7C15
WORD: Final = (1 << 64) - 1


class Event(Protocol):
    """Something that happened at an instant (UTC), with an identity of its own."""

    @property
    def event_time(self) -> datetime:
        """When it happened."""
        ...

    @property
    def key(self) -> tuple[int, ...]:
        """What two copies of it share."""
        ...


E = TypeVar("E", bound=Event)
E_co = TypeVar("E_co", bound=Event, covariant=True)


@dataclass(frozen=True, slots=True)
class Arrival(Generic[E_co]):
    """One event and when it arrives; a lost one stands where it would have arrived."""

    at: datetime
    event: E_co
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Disorder:
    """Declared rates of disorder; what befalls an event depends on its key and the seed alone.

    An event arrives less than `delay` after its time. Of all events the share `late` arrives
    `late_by` to twice `late_by` after that delay, the share `loss` never, and the share
    `duplicates` arrives twice, the second time less than `resend_after` after the first.
    """

    delay: timedelta = timedelta(0)
    late: float = 0.0
    late_by: timedelta = timedelta(0)
    loss: float = 0.0
    duplicates: float = 0.0
    resend_after: timedelta = timedelta(seconds=5)
    seed: int = 0

    def __post_init__(self) -> None:
        rates = (self.late, self.loss, self.duplicates)
        if min(rates) < 0 or sum(rates) > 1:
            raise ValueError(f"rates {rates}: each at least 0, together at most 1")
        if min(self.delay, self.late_by, self.resend_after) < timedelta(0):
            raise ValueError("events cannot arrive before they happened: no negative delays")
        if self.late and not self.late_by:
            raise ValueError("late events need a `late_by`")

    def as_they_come(self, events: Iterable[E]) -> Iterator[Arrival[E]]:
        """The arrivals of events given in order of event time, lost ones among them.

        Holds only what is under way, so the events may be without end.
        """
        under_way: list[tuple[datetime, int, Arrival[E]]] = []
        pushed = 0
        for event in events:
            while under_way and under_way[0][0] <= event.event_time:
                yield heapq.heappop(under_way)[2]
            for arrival in self._arrivals_of(event):
                pushed += 1
                heapq.heappush(under_way, (arrival.at, pushed, arrival))
        while under_way:
            yield heapq.heappop(under_way)[2]

    def _arrivals_of(self, event: E) -> Iterator[Arrival[E]]:
        draw = _uniform(self.seed, event.key)
        fate = next(draw)
        at = event.event_time + _part(next(draw), self.delay)
        if fate < self.loss:
            yield Arrival(at, event, "lost")
        elif fate < self.loss + self.late:
            late_by = self.late_by + _part(next(draw), self.late_by)
            yield Arrival(event.event_time + self.delay + late_by, event, "late")
        else:
            yield Arrival(at, event, "fresh")
            if fate < self.loss + self.late + self.duplicates:
                yield Arrival(at + _part(next(draw), self.resend_after), event, "duplicate")


def _part(share: float, span: timedelta) -> timedelta:
    """A share below 1 of a span, rounded down, so that it stays below the span."""
    return timedelta(microseconds=int(share * (span // timedelta(microseconds=1))))


def _uniform(seed: int, key: tuple[int, ...]) -> Iterator[float]:
    """Numbers from 0 to 1 (excluded) that depend on seed and key alone."""
    state = _mixed(seed & WORD)
    for part in key:
        state = _mixed((state + (int(part) + 1) * GOLDEN_GAMMA) & WORD)
    while True:
        state = (state + GOLDEN_GAMMA) & WORD
        yield (_mixed(state) >> 11) / (1 << 53)


def _mixed(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)
