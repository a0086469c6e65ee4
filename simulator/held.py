"""Late arrivals are kept back until admission is sure to find them late.

Disorder works on events, admission on files: an event that is meant to be late may still share its
file with the events that would make it late.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from simulator.disorder import Arrival, Event
from simulator.landing.parcels import Parcel

E = TypeVar("E", bound=Event)


def keep_late_back(
    parcels: Iterable[Parcel[Arrival[E]]], lateness: timedelta
) -> Iterator[Parcel[Arrival[E]]]:
    """The parcels with each late arrival moved to the first in which admission finds it late.

    When the parcels end, those that never came to be late land last, as fresh ones.
    """
    return _without_empty(_kept_back(parcels, lateness))


def _kept_back(
    parcels: Iterable[Parcel[Arrival[E]]], lateness: timedelta
) -> Iterator[Parcel[Arrival[E]]]:
    newest: datetime | None = None
    waiting: list[Arrival[E]] = []
    due: datetime | None = None
    for parcel in parcels:
        due = parcel.due
        landing: list[Arrival[E]] = []
        still_waiting: list[Arrival[E]] = []
        for arrival in [*waiting, *parcel.rows]:
            on_time = arrival.kind == "late" and not _is_late(arrival, newest, lateness)
            (still_waiting if on_time else landing).append(arrival)
        waiting = still_waiting
        yield Parcel(due, landing)
        times = [arrival.event.event_time for arrival in landing if arrival.kind != "lost"]
        newest = max(times if newest is None else [newest, *times], default=None)
    if due is not None:
        yield Parcel(
            due,
            [
                arrival if _is_late(arrival, newest, lateness) else replace(arrival, kind="fresh")
                for arrival in waiting
            ],
        )


def _is_late(arrival: Arrival[E], newest: datetime | None, lateness: timedelta) -> bool:
    return newest is not None and arrival.event.event_time <= newest - lateness


def _without_empty(parcels: Iterable[Parcel[Arrival[E]]]) -> Iterator[Parcel[Arrival[E]]]:
    """A parcel of which nothing lands (its rows are lost or kept back) joins the one before."""
    before: Parcel[Arrival[E]] | None = None
    for parcel in parcels:
        if before is None:
            before = parcel
        elif not _lands(parcel):
            before = Parcel(before.due, [*before.rows, *parcel.rows])
        elif not _lands(before):
            before = Parcel(parcel.due, [*before.rows, *parcel.rows])
        else:
            yield before
            before = parcel
    if before is not None and _lands(before):
        yield before


def _lands(parcel: Parcel[Arrival[E]]) -> bool:
    return any(arrival.kind != "lost" for arrival in parcel.rows)
