"""Patterns beside a search through all selections of events: no state machine, only the rules."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import combinations
from typing import Any, Literal

import msgspec
import pytest

from rivermark.process import Context
from rivermark.process.patterns import Match, Pattern, PatternProcess
from rivermark.process.patterns.pattern import UNBOUNDED, Condition, Contiguity
from rivermark.testing import ProcessHarness
from tests.seeds import seeds

LIMIT = 4
"""Milliseconds of within(...)."""


class Sign(msgspec.Struct, frozen=True):
    key: str
    at: int
    letter: str
    place: int


Selection = tuple[tuple[int, ...], ...]
"""The places of a match's events, step by step."""


class Found(msgspec.Struct, frozen=True):
    places: Selection


class Finder(PatternProcess[Sign, Found]):
    key = "key"
    time = "at"

    def on_match(self, match: Match[Sign], ctx: Context[Found]) -> None:
        ctx.emit(Found(tuple(tuple(e.place for e in match[name]) for name in match)))


@dataclass(frozen=True)
class Part:
    """A step as the oracle knows it: letters instead of conditions."""

    letters: str
    contiguity: Contiguity = "followed_by"
    least: int = 1
    most: int = 1
    consecutive: bool = False
    never: str = ""
    not_next: str = ""


@dataclass(frozen=True)
class Search:
    """All selections that the rules allow; `absent` are letters forbidden behind the last step."""

    parts: tuple[Part, ...]
    absent: str
    events: tuple[Sign, ...]

    def matches(self) -> list[Selection]:
        places = range(len(self.events))
        return [
            tuple(
                tuple(p for p, s in zip(taken, steps, strict=True) if s == n) for n in self.numbers
            )
            for size in range(1, len(self.events) + 1)
            for taken in combinations(places, size)
            if self.events[taken[-1]].at - self.events[taken[0]].at <= LIMIT
            for steps in self.labels(taken)
            if self.allowed(taken, steps)
        ]

    @property
    def numbers(self) -> range:
        return range(len(self.parts))

    def labels(self, taken: tuple[int, ...], first: int = 0) -> Iterator[tuple[int, ...]]:
        """The steps that the events may stand for: in order, none left out that must be there."""
        if not taken:
            yield ()
            return
        for step in range(first, len(self.parts)):
            if self.fits(self.parts[step].letters, taken[0]):
                for rest in self.labels(taken[1:], step):
                    yield (step, *rest)

    def fits(self, letters: str, place: int) -> bool:
        return self.events[place].letter in letters

    def allowed(self, taken: tuple[int, ...], steps: tuple[int, ...]) -> bool:
        counts = [steps.count(number) for number in self.numbers]
        for number, part in enumerate(self.parts):
            if not (counts[number] == 0 == part.least or part.least <= counts[number] <= part.most):
                return False
        if steps[0] != 0:
            return False
        within = [
            place
            for place in range(taken[-1] + 1, len(self.events))
            if self.events[place].at - self.events[taken[0]].at <= LIMIT
        ]
        legs = [*zip(taken, [*taken[1:], None], strict=True)]
        for index, (here, there) in enumerate(legs):
            if there is None and not self.absent:
                return True
            passed = within if there is None else list(range(here + 1, there))
            step = steps[index]
            goal = len(self.parts) if there is None else steps[index + 1]
            if not self.leg(taken, steps, index, passed, goal, there):
                return False
            if goal == step and self.parts[step].consecutive and passed:
                return False
        return True

    def leg(
        self,
        taken: tuple[int, ...],
        steps: tuple[int, ...],
        index: int,
        passed: list[int],
        goal: int,
        there: int | None,
    ) -> bool:
        """Whether the events between two taken ones may be passed over, and the second taken."""
        step, part = steps[index], self.parts[steps[index]]
        for place in passed:
            if not self.passes(taken, steps, index, place):
                return False
        if there is None:
            upto = taken[index] + 1 + len(passed)
            return len(self.parts) not in self.closed(taken, steps, index, upto)
        if goal == step:
            return True
        enough = sum(1 for each in steps[: index + 1] if each == step) >= part.least
        strict = self.parts[goal].contiguity == "next" and bool(passed)
        shut = self.closed(taken, steps, index, there + 1)
        return enough and not strict and goal not in shut

    def passes(
        self, taken: tuple[int, ...], steps: tuple[int, ...], index: int, place: int
    ) -> bool:
        step, part = steps[index], self.parts[steps[index]]
        count = sum(1 for each in steps[: index + 1] if each == step)
        nothing_passed = place == taken[index] + 1
        room = count < part.most
        if room and (nothing_passed or not part.consecutive) and self.fits(part.letters, place):
            return False
        if count < part.least:
            return not part.consecutive
        shut = self.closed(taken, steps, index, place + 1)
        ways = self.ways(step)
        if ways and all(way in shut for way in ways):
            return False
        waits = room and not part.consecutive
        for way in ways:
            if way in shut:
                continue
            if way == len(self.parts):
                waits = True
                continue
            target = self.parts[way]
            if target.contiguity == "next" and not nothing_passed:
                continue
            if self.fits(target.letters, place):
                if target.contiguity != "followed_by_any":
                    return False
                waits = True
            elif target.contiguity != "next":
                waits = True
        return waits

    def ways(self, step: int) -> list[int]:
        """The steps that may follow, and the end where something must be absent before it."""
        found = []
        for number in range(step + 1, len(self.parts)):
            found.append(number)
            if self.parts[number].least > 0:
                return found
        return [*found, len(self.parts)] if self.absent else found

    def closed(
        self, taken: tuple[int, ...], steps: tuple[int, ...], index: int, upto: int
    ) -> set[int]:
        """The ways that an event before `upto` has closed since the present step had enough."""
        step = steps[index]
        shut = set()
        for way in self.ways(step):
            for earlier in range(index + 1):
                if steps[earlier] != step:
                    continue
                if sum(1 for s in steps[: earlier + 1] if s == step) < self.parts[step].least:
                    continue
                until = taken[earlier + 1] if earlier < index else upto
                for place in range(taken[earlier] + 1, until):
                    if self.shuts(step, way, place, first=place == taken[earlier] + 1):
                        shut.add(way)
        return shut

    def shuts(self, step: int, way: int, place: int, *, first: bool) -> bool:
        if any(
            self.fits(part.never, place) or (first and self.fits(part.not_next, place))
            for part in self.parts[step + 1 : way + 1]
        ):
            return True
        return way == len(self.parts) and self.fits(self.absent, place)


def condition(letters: str) -> Condition:
    return lambda event, earlier: event.letter in letters


def pattern_of(parts: tuple[Part, ...], absent: str) -> Pattern:
    pattern = Pattern.begin("0", condition(parts[0].letters))
    for number, part in enumerate(parts):
        if number:
            if part.never:
                pattern = pattern.not_followed_by(condition(part.never))
            if part.not_next:
                pattern = pattern.not_next(condition(part.not_next))
            add = getattr(pattern, part.contiguity)
            pattern = add(str(number), condition(part.letters))
        if part.most == UNBOUNDED:
            pattern = pattern.one_or_more()
        elif part.most > 1:
            pattern = pattern.times(max(part.least, 1), part.most)
        if part.least == 0:
            pattern = pattern.optional()
        if part.consecutive:
            pattern = pattern.consecutive()
    if absent:
        pattern = pattern.not_followed_by(condition(absent))
    return pattern.within(timedelta(milliseconds=LIMIT))


def letters(chance: random.Random) -> str:
    return "".join(chance.sample("abcd", chance.choice((1, 1, 2))))


def random_parts(chance: random.Random) -> tuple[Part, ...]:
    parts = []
    for number in range(chance.randint(1, 4)):
        least, most = chance.choice(((1, 1), (1, 1), (1, UNBOUNDED), (1, 2), (2, 2), (1, 3)))
        if number and chance.random() < 0.3:
            least = 0
        parts.append(
            Part(
                letters(chance),
                chance.choice(("followed_by", "followed_by", "followed_by_any", "next")),
                least,
                most,
                most > 1 and chance.random() < 0.3,
                letters(chance) if number and chance.random() < 0.3 else "",
                letters(chance) if number and chance.random() < 0.15 else "",
            )
        )
    return tuple(parts)


def random_events(chance: random.Random) -> tuple[Sign, ...]:
    times = sorted(chance.choices(range(8), k=chance.randint(1, 7)))
    return tuple(Sign("k", at, chance.choice("abcd"), place) for place, at in enumerate(times))


def run(
    pattern: Pattern,
    events: tuple[Sign, ...],
    after_match: Literal["keep", "skip_to_next", "skip_past_last"] = "keep",
) -> list[Selection]:
    finder: Any = type("AFinder", (Finder,), {"pattern": pattern, "after_match": after_match})
    harness: ProcessHarness[Sign, Found] = ProcessHarness(finder())
    harness.feed(events)
    harness.end_of_input()
    assert harness.is_empty()
    return [each.places for each in harness.outputs()]


@pytest.mark.parametrize("seed", seeds(5, 20))
def test_patterns_find_what_a_search_through_all_selections_finds(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        parts, events = random_parts(chance), random_events(chance)
        absent = letters(chance) if chance.random() < 0.3 else ""
        expected = sorted(Search(parts, absent, events).matches())
        assert sorted(run(pattern_of(parts, absent), events)) == expected, (parts, absent, events)


def first(match: Selection) -> int:
    return match[0][0]


def last(match: Selection) -> int:
    return max(place for places in match for place in places)


@pytest.mark.parametrize("after_match", ["skip_to_next", "skip_past_last"])
def test_after_a_match_exactly_those_matches_are_missing_that_the_rule_drops(
    after_match: Literal["skip_to_next", "skip_past_last"],
) -> None:
    chance = random.Random(7)
    for _ in range(400):
        parts, events = random_parts(chance), random_events(chance)
        absent = letters(chance) if chance.random() < 0.3 else ""
        pattern = pattern_of(parts, absent)
        # By the moment at which they are complete, and then by their beginning.
        everything = run(pattern, events)
        everything.sort(key=first)
        everything.sort(key=(lambda m, es=events: es[first(m)].at) if absent else last)
        expected: list[Selection] = []
        for match in everything:
            dropped = (
                first(match) in {first(each) for each in expected}
                if after_match == "skip_to_next"
                else any(first(match) <= last(each) for each in expected)
            )
            if not dropped:
                expected.append(match)
        found = run(pattern, events, after_match)
        assert [(first(m), last(m)) for m in found] == [(first(m), last(m)) for m in expected]
        assert set(found) <= set(everything)
