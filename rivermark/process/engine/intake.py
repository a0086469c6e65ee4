"""Takes a batch in: checks its columns and puts its events in the order of handling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from rivermark.process.api.declaration import Declaration, InputSpec
from rivermark.process.api.inputs import Arrivals
from rivermark.process.errors import DeadLetter, Misuse, ProcessError, shorten
from rivermark.process.instants import Millis


@dataclass(frozen=True, slots=True)
class EventRun:
    """Events that follow one another, column by column; ranks are places among the inputs."""

    ranks: Sequence[int]
    keys: Sequence[Any]
    times: Sequence[Millis]
    rows: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Intake:
    """A batch in the order of handling, and the dead letters of events without key."""

    runs: list[EventRun]
    dead: list[DeadLetter]


def take_in(declared: Declaration, batch: Sequence[Arrivals], processing_time: Millis) -> Intake:
    """EventOrder a batch as the process wants it.

    In arrival order inputs follow one another, broadcasts and controls first, each in its own order
    of arrival. In event-time order they are merged by time, with the same precedence at one time.
    An event without key raises ProcessError, or becomes a dead letter where the process allows it.
    """
    dead: list[DeadLetter] = []
    runs: list[EventRun] = []
    ranks = {each.name: rank for rank, each in enumerate(declared.inputs)}
    for arrivals in sorted(batch, key=lambda each: ranks.get(each.input, -1)):
        spec = declared.input(arrivals.input)
        rows = arrivals.rows
        if not rows:
            continue
        spec.event.verify_all(rows)
        keys = _keys(declared, spec, arrivals)
        times = _times(declared, spec, arrivals, processing_time)
        run = EventRun([ranks[spec.name]] * len(rows), keys, times, rows)
        if arrivals.offsets is not None:
            run = _permuted(run, sorted(range(len(rows)), key=arrivals.offsets.__getitem__))
        if not spec.broadcast and None in keys:
            run = _without_null_keys(declared, spec, run, dead)
        runs.append(run)
    if declared.order == "event_time" and runs:
        runs = [_by_time(runs)]
    return Intake(runs, dead)


def _keys(declared: Declaration, spec: InputSpec, arrivals: Arrivals) -> Sequence[Any]:
    if spec.broadcast:
        return [None] * len(arrivals.rows)
    if arrivals.keys is None or len(arrivals.keys) != len(arrivals.rows):
        raise Misuse(f"process '{declared.name}': input '{spec.name}' needs one key for each event")
    return arrivals.keys


def _times(
    declared: Declaration, spec: InputSpec, arrivals: Arrivals, processing_time: Millis
) -> Sequence[Millis]:
    if spec.time is None:
        return [processing_time] * len(arrivals.rows)
    times = arrivals.times
    if times is None or len(times) != len(arrivals.rows):
        raise Misuse(
            f"process '{declared.name}': input '{spec.name}' needs one time for each event"
        )
    if not set(map(type, times)) <= {int}:
        place = next(i for i, each in enumerate(times) if type(each) is not int)
        raise Misuse(
            f"process '{declared.name}': input '{spec.name}' has an event whose time is "
            f"{times[place]!r}, not milliseconds: {shorten(arrivals.rows[place])}"
        )
    return times


def _permuted(run: EventRun, order: list[int]) -> EventRun:
    def ordered(column: Sequence[Any]) -> list[Any]:
        return list(map(column.__getitem__, order))

    return EventRun(ordered(run.ranks), ordered(run.keys), ordered(run.times), ordered(run.rows))


def _by_time(runs: list[EventRun]) -> EventRun:
    if len(runs) == 1:
        merged = runs[0]
    else:
        merged = EventRun(
            list(chain.from_iterable(each.ranks for each in runs)),
            list(chain.from_iterable(each.keys for each in runs)),
            list(chain.from_iterable(each.times for each in runs)),
            list(chain.from_iterable(each.rows for each in runs)),
        )
    order = sorted(range(len(merged.rows)), key=merged.times.__getitem__)
    return _permuted(merged, order)


def _without_null_keys(
    declared: Declaration, spec: InputSpec, run: EventRun, dead: list[DeadLetter]
) -> EventRun:
    keep = []
    for place, key in enumerate(run.keys):
        if key is not None:
            keep.append(place)
            continue
        problem = Misuse("the event has no key")
        failure = ProcessError(declared.name, None, run.rows[place], run.times[place], problem)
        if not declared.dead_letter:
            raise failure
        dead.append(DeadLetter.of(failure, problem, spec.name))
    return _permuted(run, keep)
