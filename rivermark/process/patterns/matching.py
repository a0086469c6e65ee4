"""Follows the beginnings of matches of one key through its events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from rivermark.process.instants import Millis
from rivermark.process.patterns.match import Match
from rivermark.process.patterns.pattern import Condition, Pattern, Step

E = TypeVar("E")


class Partial(msgspec.Struct, Generic[E], array_like=True):
    """The beginning of a match: the step it is in, and the events so far by step.

    `start` and `end` are the times of its first and last event; `skipped` says that other events
    came since the last.
    """

    step: int
    start: int
    end: int
    events: list[list[E]]
    skipped: bool = False

    def count(self) -> int:
        """Number of events in the present step."""
        return len(self.events[self.step])


class Advance(msgspec.Struct, Generic[E]):
    """What an event did: beginnings that go on, and matches that it completed."""

    partials: list[Partial[E]]
    matches: list[Partial[E]]


def advance(pattern: Pattern, partials: list[Partial[E]], event: E, at: Millis) -> Advance[E]:
    """Let an event at time `at` begin, extend, complete or break matches."""
    advanced: Advance[E] = Advance([], [])
    for partial in partials:
        if pattern.limit is not None and at - partial.start > pattern.limit:
            advanced.partials.append(partial)  # over; its timer will say so
            continue
        for each in _moves(pattern, partial, event, at):
            _keep(pattern, each, advanced, taken=not each.skipped)
    empty: Match[E] = match_of(pattern, Partial(0, at, at, []))
    if pattern.steps[0].condition(event, empty):
        _keep(pattern, Partial(0, at, at, [[event]]), advanced, taken=True)
    return advanced


def match_of(pattern: Pattern, partial: Partial[E]) -> Match[E]:
    """The events of a beginning, or of a whole match, by the names of their steps."""
    names = tuple(each.name for each in pattern.steps)
    return Match(names, partial.events, partial.start, partial.end)


def is_whole(pattern: Pattern, partial: Partial[Any]) -> bool:
    """Whether a beginning has all the events that the pattern asks for."""
    enough = partial.count() >= pattern.steps[partial.step].least
    return enough and all(each.least == 0 for each in pattern.steps[partial.step + 1 :])


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


def _moves(pattern: Pattern, partial: Partial[E], event: E, at: Millis) -> Iterator[Partial[E]]:
    """The ways in which a beginning goes on after an event; none when the event breaks it."""
    earlier = match_of(pattern, partial)
    step = pattern.steps[partial.step]
    more = partial.count() < step.most and not (step.consecutive and partial.skipped)
    if more and step.condition(event, earlier):
        yield _taken(partial, partial.step, event, at)
        return
    for_another = False
    if partial.count() >= step.least:
        if is_whole(pattern, partial) and _any(pattern.absence, event, earlier):
            return
        for place, following in _reachable(pattern, partial.step):
            if _forbids(following, event, earlier, partial):
                return
            strict = following.contiguity == "next"
            if not (strict and partial.skipped) and following.condition(event, earlier):
                yield _taken(partial, place, event, at)
                if following.contiguity != "followed_by_any":
                    return
                for_another = True
    if for_another or _may_wait(pattern, partial):
        yield msgspec.structs.replace(partial, skipped=True)


def _may_wait(pattern: Pattern, partial: Partial[Any]) -> bool:
    """Whether an event that does not fit may be passed over."""
    step = pattern.steps[partial.step]
    if partial.count() < step.most and not step.consecutive:
        return True
    if partial.count() < step.least:
        return False
    following = _reachable(pattern, partial.step)
    return bool(pattern.absence) or any(each.contiguity != "next" for _, each in following)


def _reachable(pattern: Pattern, step: int) -> Iterator[tuple[int, Step]]:
    """The steps that may come next: the following one, and those behind optional ones."""
    for place in range(step + 1, len(pattern.steps)):
        yield place, pattern.steps[place]
        if pattern.steps[place].least > 0:
            return


def _taken(partial: Partial[E], step: int, event: E, at: Millis) -> Partial[E]:
    events = [*partial.events, *([] for _ in range(step - len(partial.events) + 1))]
    events[step] = [*events[step], event]
    return Partial(step, partial.start, at, events)


def _forbids(step: Step, event: Any, earlier: Match[Any], partial: Partial[Any]) -> bool:
    if _any(step.forbidden, event, earlier):
        return True
    return not partial.skipped and _any(step.forbidden_next, event, earlier)


def _any(conditions: tuple[Condition, ...], event: Any, earlier: Match[Any]) -> bool:
    return any(each(event, earlier) for each in conditions)
