"""Follows the beginnings of matches of one key through its events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from rivermark.process.instants import Millis
from rivermark.process.patterns.match import Match
from rivermark.process.patterns.pattern import Pattern, Way

E = TypeVar("E")


class Partial(msgspec.Struct, Generic[E], array_like=True):
    """The beginning of a match: the step it is in, and the events so far by step.

    `start` and `end` are the times of its first and last event, `first` and `last` their numbers
    among the events of the key: they grow as long as any beginning is kept. `skipped` says that
    other events came since the last; `closed` are the later steps (or the end of the pattern) that
    it cannot reach from here any more, because an event came that must not lie on the way.
    """

    step: int
    start: int
    end: int
    events: list[list[E]]
    skipped: bool = False
    first: int = 0
    last: int = 0
    closed: list[int] = []

    def count(self) -> int:
        """Number of events in the present step."""
        return len(self.events[self.step])


class Advance(msgspec.Struct, Generic[E]):
    """The effect of an event: beginnings that go on, and matches that it completed."""

    partials: list[Partial[E]]
    matches: list[Partial[E]]


def advance(pattern: Pattern, partials: list[Partial[E]], event: E, at: Millis) -> Advance[E]:
    """Let an event at time `at` begin, extend, complete or break matches."""
    advanced: Advance[E] = Advance([], [])
    number = max((each.last for each in partials), default=0) + 1
    for partial in partials:
        if pattern.limit is not None and at - partial.start > pattern.limit:
            advanced.partials.append(partial)  # over; its timer will say so
            continue
        for each in _moves(pattern, partial, event, at, number):
            _keep(pattern, each, advanced, taken=each.last == number)
    empty: Match[E] = match_of(pattern, Partial(0, at, at, []))
    if pattern.steps[0].condition(event, empty):
        opened = Partial(0, at, at, [[event]], first=number, last=number)
        _keep(pattern, opened, advanced, taken=True)
    return advanced


def match_of(pattern: Pattern, partial: Partial[E]) -> Match[E]:
    """The events of a beginning, or of a whole match, by the names of their steps."""
    return Match(pattern.names, partial.events, partial.start, partial.end)


def is_whole(pattern: Pattern, partial: Partial[Any]) -> bool:
    """True if a beginning has all the events that the pattern asks for, and none it forbids."""
    enough = partial.count() >= pattern.steps[partial.step].least
    end = len(pattern.steps)
    rest = all(each.least == 0 for each in pattern.steps[partial.step + 1 :])
    return enough and rest and end not in partial.closed


def _keep(pattern: Pattern, partial: Partial[E], advanced: Advance[E], *, taken: bool) -> None:
    whole = is_whole(pattern, partial)
    if whole and taken and not pattern.absence:
        advanced.matches.append(partial)
    if not whole or _may_go_on(pattern, partial):
        advanced.partials.append(partial)


def _may_go_on(pattern: Pattern, partial: Partial[Any]) -> bool:
    last = partial.step == len(pattern.steps) - 1
    full = partial.count() >= pattern.steps[partial.step].most
    return bool(pattern.absence) or not (last and full)


def _moves(
    pattern: Pattern, partial: Partial[E], event: E, at: Millis, number: int
) -> Iterator[Partial[E]]:
    """The ways in which a beginning goes on after an event; none when the event breaks it.

    An event that fits the present step and a later one, or several later ones, is tried as each.
    """
    earlier = match_of(pattern, partial)
    step = pattern.steps[partial.step]
    more = partial.count() < step.most and not (step.consecutive and partial.skipped)
    repeats = more and step.condition(event, earlier)
    if repeats:
        yield _taken(partial, partial.step, event, at, number)
    ways: Sequence[Way] = pattern.ways[partial.step] if partial.count() >= step.least else ()
    if partial.closed:
        ways = [way for way in ways if way.place not in partial.closed]
    closed = [way.place for way in ways if _forbids(way, event, earlier, partial)]
    if ways and len(closed) == len(ways) and not repeats:
        return
    may_pass = not repeats
    waits = partial.count() < step.most and not step.consecutive
    for way in ways:
        following = way.step
        if way.place in closed:
            continue
        if following is None:
            waits = True
        elif following.contiguity == "next" and partial.skipped:
            continue
        elif following.condition(event, earlier):
            yield _taken(partial, way.place, event, at, number)
            if following.contiguity == "followed_by_any":
                waits = True
            else:
                may_pass = False
        elif following.contiguity != "next":
            waits = True
    if may_pass and waits:
        yield msgspec.structs.replace(partial, skipped=True, closed=[*partial.closed, *closed])


def _taken(partial: Partial[E], step: int, event: E, at: Millis, number: int) -> Partial[E]:
    events = [*partial.events, *([] for _ in range(step - len(partial.events) + 1))]
    events[step] = [*events[step], event]
    closed = partial.closed if step == partial.step else []
    return Partial(step, partial.start, at, events, False, partial.first, number, closed)


def _forbids(way: Way, event: Any, earlier: Match[Any], partial: Partial[Any]) -> bool:
    if any(each(event, earlier) for each in way.forbidden):
        return True
    return not partial.skipped and any(each(event, earlier) for each in way.forbidden_next)
