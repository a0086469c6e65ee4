"""Pattern processes: what to do with each match, and with those whose time ran out."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Literal, TypeVar

from rivermark.model.errors import DeclarationError
from rivermark.process.api.context import Context
from rivermark.process.api.declaration import EventOrder
from rivermark.process.api.state import ListState
from rivermark.process.errors import Misuse
from rivermark.process.instants import Millis
from rivermark.process.keyed import KeyedProcess
from rivermark.process.patterns.match import Match
from rivermark.process.patterns.matching import Partial, advance, is_whole, match_of
from rivermark.process.patterns.pattern import Pattern

E = TypeVar("E")
Out = TypeVar("Out")

AfterMatch = Literal["keep", "skip_to_next", "skip_past_last"]


class PatternProcess(KeyedProcess[E, Out], Generic[E, Out]):
    """Looks for a pattern in the events of each key, in order of event time.

        >>> import msgspec
        >>> from datetime import timedelta
        >>> from rivermark.testing import ProcessHarness
        >>> class Sign(msgspec.Struct):
        ...     area: str
        ...     at: int
        ...     kind: str
        >>> class HeatThenSmoke(PatternProcess[Sign, tuple[str, int]]):
        ...     key = "area"
        ...     time = "at"
        ...     pattern = (
        ...         Pattern.begin("heat", lambda event, earlier: event.kind == "heat")
        ...         .followed_by("smoke", lambda event, earlier: event.kind == "smoke")
        ...         .within(timedelta(minutes=10))
        ...     )
        ...
        ...     def on_match(self, match, ctx):
        ...         ctx.emit((ctx.key, match.end - match.start))
        >>> fires = ProcessHarness(HeatThenSmoke())
        >>> fires.feed([Sign("north", 0, "heat"), Sign("north", 500, "smoke")])
        []
        >>> fires.end_of_input()
        [('north', 500)]

    `after_match` says what becomes of the other beginnings of the key: `keep` lets each go on to a
    match of its own; `skip_to_next` drops those that began with the same event; `skip_past_last`
    drops those that began before the match was over, and gives one match where several end with
    one event. Kept are the beginnings of matches, each until it is a match, is broken, or its time
    is over.

    Raises:
        DeclarationError: When the class is defined: no event time, or a pattern that could never
            end.
    """

    order: ClassVar[EventOrder] = "event_time"
    hold: ClassVar[bool] = True

    pattern: ClassVar[Pattern]
    after_match: ClassVar[AfterMatch] = "keep"
    most_beginnings: ClassVar[int] = 1_000

    partials: ListState[Partial[E]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        pattern = getattr(cls, "pattern", None)
        if pattern is None:
            return
        pattern.check(cls.__name__)
        if cls.time is None and hasattr(cls, "declaration"):
            raise DeclarationError(f"process '{cls.__name__}': a pattern needs an event time")

    def on_match(self, match: Match[E], ctx: Context[Out]) -> None:
        """Handle a match."""
        raise NotImplementedError

    def on_timeout(self, match: Match[E], ctx: Context[Out]) -> None:
        """Handle the beginning of a match whose time is over; nothing by default."""

    def on_event(self, event: E, ctx: Context[Out]) -> None:
        """Let the event begin, extend, complete or break matches."""
        before = self._starts()
        advanced = advance(self.pattern, self.partials, event, ctx.timestamp)
        matches, kept = self._skip(advanced.matches, advanced.partials)
        if len(kept) > self.most_beginnings:
            raise Misuse(
                f"{len(kept):,} beginnings of matches are waiting, more than "
                f"{self.most_beginnings:,}: shorten within(...), or skip after a match"
            )
        self.partials[:] = kept
        self._set_timers(before, ctx)
        for each in matches:
            self.on_match(match_of(self.pattern, each), ctx)

    def on_timer(self, at: Millis, ctx: Context[Out]) -> None:
        """Take out what began too long ago: a match by absence, or a time-out."""
        over = [each for each in self.partials if self._end(each.start) <= at]
        rest = [each for each in self.partials if self._end(each.start) > at]
        absent = [each for each in over if is_whole(self.pattern, each) and self.pattern.absence]
        matches, kept = self._skip(absent, [*over, *rest])
        complete, stay = {id(each) for each in matches}, {id(each) for each in kept}
        self.partials[:] = [each for each in rest if id(each) in stay]
        self._set_timers({each.start for each in rest}, ctx)
        for each in over:
            if id(each) in complete:
                self.on_match(match_of(self.pattern, each), ctx)
            elif id(each) in stay and not is_whole(self.pattern, each):
                self.on_timeout(match_of(self.pattern, each), ctx)

    def _skip(
        self, matches: list[Partial[E]], partials: list[Partial[E]]
    ) -> tuple[list[Partial[E]], list[Partial[E]]]:
        """The matches to handle, and the beginnings that stay after them, by `after_match`."""
        if self.after_match == "keep":
            return matches, partials
        first_ones: list[Partial[E]] = []
        for each in matches:
            if not any(self._drops(match, each) for match in first_ones):
                first_ones.append(each)
        return first_ones, [
            each for each in partials if not any(self._drops(match, each) for match in first_ones)
        ]

    def _drops(self, match: Partial[E], other: Partial[E]) -> bool:
        if self.after_match == "skip_past_last":
            return other.first <= match.last
        # Beginnings stored before events had numbers are told apart by their time.
        return (match.first, match.start) == (other.first, other.start)

    def _starts(self) -> set[Millis]:
        return {each.start for each in self.partials}

    def _end(self, start: Millis) -> Millis:
        return start + (self.pattern.limit or 0)

    def _set_timers(self, before: set[Millis], ctx: Context[Out]) -> None:
        if self.pattern.limit is None:
            return
        after = self._starts()
        for start in sorted(before - after):
            ctx.timers.event.delete(self._end(start))
        for start in sorted(after - before):
            ctx.timers.event.register(self._end(start))
