"""Worlds of many actors: each is drawn on its own, and all events come in order of time."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TypeVar

from simulator.disorder import Event

E = TypeVar("E", bound=Event)


def events_of(
    actors: Iterable[Iterator[E]], beginning: datetime, length: timedelta | None
) -> Iterator[E]:
    """The events of all actors in order of event time; without end if there is no length.

    Each actor's events begin after `beginning` and come in order.
    """
    merged = heapq.merge(*actors, key=lambda event: (event.event_time, event.key))
    if length is None:
        return merged
    return takewhile(lambda event: event.event_time < beginning + length, merged)


def first_number(beginning: datetime) -> int:
    """The number before an actor's first event: numbers rise however often a world is restarted."""
    return int(beginning.timestamp())


def span_around(draw: random.Random, mean: timedelta) -> timedelta:
    """A span drawn around a mean, whole milliseconds, at least one."""
    millis = draw.expovariate(1 / (mean / timedelta(milliseconds=1)))
    return timedelta(milliseconds=1 + int(millis))
