"""Feeds of generated events that drip into their landing folders together, at one pace."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from operator import attrgetter
from pathlib import Path
from typing import Any

from rivermark import Contract, Ingest
from rivermark.testing.landing import Landed
from simulator.disorder import Arrival, Disorder
from simulator.held import keep_late_back
from simulator.landing.folder import LandingFolder
from simulator.landing.json_lines import json_line
from simulator.landing.pace import Pace, Paced, Progress, land_at_pace
from simulator.landing.parcels import Parcel, cut


@dataclass(frozen=True)
class Feed:
    """Events in order of event time on their way to an ingest, as JSON lines, with disorder.

    An event has an attribute for each field of the ingest's contract.
    """

    ingest: Ingest
    events: Iterable[Any]
    disorder: Disorder = field(default_factory=Disorder)

    def parcels(self, every: timedelta) -> Iterator[_Addressed]:
        """Rows that land together: one parcel per `every` of the events' time that has any."""
        arrivals = cut(self.disorder.as_they_come(self.events), every)
        lateness = self.ingest.lateness
        held = arrivals if lateness is None else keep_late_back(arrivals, lateness)
        for parcel in held:
            yield _Addressed(parcel.due, parcel.rows, self)

    def lines(self, parcel: Parcel[Arrival[Any]]) -> list[str]:
        """The lines of a parcel's rows, without the lost ones."""
        line = line_of(self.ingest.contract)
        return [line(row.event) for row in parcel.rows if row.kind != "lost"]


def line_of(contract: Contract) -> Callable[[Any], str]:
    """Writes an event as a JSON line: the contract's fields in order, from attributes."""
    names = [each.name for each in contract.fields]
    values = attrgetter(*names)
    return lambda event: json_line(dict(zip(names, values(event), strict=True)))


@dataclass(frozen=True)
class _Addressed(Parcel[Arrival[Any]]):
    feed: Feed


def drip_feeds(
    landing: Path,
    feeds: Sequence[Feed],
    *,
    every: timedelta = timedelta(seconds=1),
    pace: Pace | None = None,
    stop: threading.Event | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Paced:
    """Land the feeds below `landing`, each in its ingest's folder, the files in order of time.

    They land at the given pace (default: as fast as possible) until the events end, `stop` is set
    or Ctrl-C is pressed. What lands in which file depends on events, disorder and `every` alone.
    """
    folders = {f.ingest.name: LandingFolder(landing / f.ingest.source.name) for f in feeds}

    def deliver(parcel: _Addressed) -> Landed:
        return folders[parcel.feed.ingest.name].land(parcel.feed.lines(parcel))

    merged = heapq.merge(*(f.parcels(every) for f in feeds), key=lambda parcel: parcel.due)
    return land_at_pace(merged, deliver, pace or Pace(), stop=stop, on_progress=on_progress)
