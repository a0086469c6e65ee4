"""A pattern: which events, in which order and within which time, make a match."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any, Final, Literal

from rivermark.model.errors import DeclarationError
from rivermark.process.instants import Millis, span
from rivermark.process.patterns.match import Match

Condition = Callable[[Any, Match[Any]], bool]
"""Whether an event fits, given the event and what was matched before it."""

Contiguity = Literal["next", "followed_by", "followed_by_any"]

UNBOUNDED: Final = 2**31


@dataclass(frozen=True)
class Step:
    """One step of a pattern: its condition, how it follows the one before, how often it occurs.

    `forbidden` are conditions that no event between the step before and this one may fulfil;
    `forbidden_next` the same for the very next event alone.
    """

    name: str
    condition: Condition
    contiguity: Contiguity
    least: int = 1
    most: int = 1
    consecutive: bool = False
    forbidden: tuple[Condition, ...] = ()
    forbidden_next: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        for condition in (self.condition, *self.forbidden, *self.forbidden_next):
            if not callable(condition):
                raise DeclarationError(
                    f"step '{self.name}' of a pattern: its condition is {condition!r}; write a "
                    "function of the event and the earlier ones"
                )


@dataclass(frozen=True)
class Way:
    """A way from a step to a later one, or to the end of the pattern, where `step` is None.

    `forbidden` are the conditions of the steps that are left out on the way, and its own.
    """

    place: int
    step: Step | None
    forbidden: tuple[Condition, ...]
    forbidden_next: tuple[Condition, ...]


@dataclass(frozen=True)
class Pattern:
    """A sequence of steps; begin it with `Pattern.begin` and add to it. Patterns never change.

        heat_then_smoke = (
            Pattern.begin("heat", lambda event, earlier: event.degrees > 100)
            .followed_by("smoke", lambda event, earlier: event.density > 0.5)
            .within(timedelta(minutes=10))
        )

    - `next`: the very next event of the key must fit; `followed_by`: the first that fits, whatever
      lies between; `followed_by_any`: each that fits, in matches of its own.
    - `not_next`, `not_followed_by`: no such event there. At the end of a pattern, together with
      `within`: no such event until the time is over; the match is then complete.
    - `times`, `one_or_more`, `optional`, `consecutive` speak of the step before them.
    - `within`: from the first event to the last; exactly that long still counts.
    """

    steps: tuple[Step, ...]
    limit: Millis | None = None
    pending: tuple[tuple[Condition, bool], ...] = ()

    @classmethod
    def begin(cls, name: str, condition: Condition) -> Pattern:
        """A pattern whose first event fulfils `condition`."""
        return cls((Step(name, condition, "followed_by"),))

    def next(self, name: str, condition: Condition) -> Pattern:
        """The very next event fulfils `condition`."""
        return self._then(name, condition, "next")

    def followed_by(self, name: str, condition: Condition) -> Pattern:
        """The first later event that fulfils `condition`."""
        return self._then(name, condition, "followed_by")

    def followed_by_any(self, name: str, condition: Condition) -> Pattern:
        """Any later event that fulfils `condition`: each gives a match."""
        return self._then(name, condition, "followed_by_any")

    def not_next(self, condition: Condition) -> Pattern:
        """The very next event does not fulfil `condition`."""
        return replace(self, pending=(*self.pending, (condition, True)))

    def not_followed_by(self, condition: Condition) -> Pattern:
        """No event until the next step, or until the time is over, fulfils `condition`."""
        return replace(self, pending=(*self.pending, (condition, False)))

    def times(self, least: int, most: int | None = None) -> Pattern:
        """The step before occurs this often, other events in between allowed."""
        most = least if most is None else most
        if not 1 <= least <= most:
            raise DeclarationError(
                "a step occurs at least once, and most times at least least times"
            )
        return self._with_last(least=least, most=most)

    def one_or_more(self) -> Pattern:
        """The step before occurs once or more; each further event extends the match."""
        return self._with_last(most=UNBOUNDED)

    def optional(self) -> Pattern:
        """The step before may be missing."""
        if len(self.steps) == 1:
            raise DeclarationError("the first step of a pattern cannot be optional")
        return self._with_last(least=0)

    def consecutive(self) -> Pattern:
        """The occurrences of the step before follow one another without other events between."""
        return self._with_last(consecutive=True)

    def within(self, limit: timedelta) -> Pattern:
        """From the first event of a match to its last at most this much event time passes."""
        return replace(self, limit=span(limit, "the time of a pattern"))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the steps."""
        return tuple(each.name for each in self.steps)

    @cached_property
    def ways(self) -> tuple[tuple[Way, ...], ...]:
        """By step the ways on from it: to the following step, and to those behind optional ones.

        The end counts only where the pattern says what must not come before it.
        """
        return tuple(tuple(self._ways_from(place)) for place in range(len(self.steps)))

    def _ways_from(self, start: int) -> Iterator[Way]:
        forbidden: tuple[Condition, ...] = ()
        forbidden_next: tuple[Condition, ...] = ()
        for place in range(start + 1, len(self.steps)):
            step = self.steps[place]
            forbidden += step.forbidden
            forbidden_next += step.forbidden_next
            yield Way(place, step, forbidden, forbidden_next)
            if step.least > 0:
                return
        if self.absence:
            yield Way(len(self.steps), None, (*forbidden, *self.absence), forbidden_next)

    @cached_property
    def absence(self) -> tuple[Condition, ...]:
        """Conditions that no event after the last step may fulfil until the time is over."""
        return tuple(condition for condition, _ in self.pending)

    def check(self, process: str) -> None:
        """Refuse a pattern that could never end or whose steps have one name."""
        names = [each.name for each in self.steps]
        if len(set(names)) != len(names):
            raise DeclarationError(f"process '{process}': two steps of the pattern have one name")
        if self.pending and self.limit is None:
            raise DeclarationError(
                f"process '{process}': the absence of an event ends a pattern only with within(...)"
            )
        if any(only_next for _, only_next in self.pending):
            raise DeclarationError(
                f"process '{process}': not_next needs a step after it; at the end of a pattern use "
                "not_followed_by"
            )
        strict = all(each.contiguity == "next" for each in self.steps[1:]) and all(
            each.most == 1 for each in self.steps
        )
        if self.limit is None and not strict:
            raise DeclarationError(
                f"process '{process}': without within(...) the beginnings of matches that never "
                "end would be kept without limit"
            )

    def _then(self, name: str, condition: Condition, contiguity: Contiguity) -> Pattern:
        step = Step(
            name,
            condition,
            contiguity,
            forbidden=tuple(each for each, only_next in self.pending if not only_next),
            forbidden_next=tuple(each for each, only_next in self.pending if only_next),
        )
        return replace(self, steps=(*self.steps, step), pending=())

    def _with_last(self, **changes: Any) -> Pattern:
        if self.pending:
            raise DeclarationError("times and optional speak of a step, not of an absence")
        return replace(self, steps=(*self.steps[:-1], replace(self.steps[-1], **changes)))
