"""Sessions: the events of a visitor with no longer gap between them than their device's.

Phones go to sleep: ten minutes without an event end a session there, half an hour on a desktop. Two
events exactly a gap apart belong together, as in Spark's session windows.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, ClassVar, Final

from rivermark.process import Millis, Record, SideOutput
from rivermark.process.windows import Sessions, WindowAggregate, WindowContext

GAPS: Final = {"phone": timedelta(minutes=10), "desktop": timedelta(minutes=30)}
LONGEST_GAP: Final = max(GAPS.values())


class Visit(Record):
    """A page view as sessions need it."""

    user_id: str
    number: int
    event_time: Millis
    action: str
    device: str


class Seen(Record):
    """State of an open session: the numbers of its events, once each, and of its purchases.

    Events are added in place: a bot has many of them, and a copy for each would cost their square.
    """

    numbers: set[int]
    purchases: set[int]


class Session(Record):
    """A session from its first event to a gap after its last."""

    user_id: str
    session_start: Annotated[Millis, "Time of the first event (UTC)."]
    session_end: Annotated[Millis, "When the gap after the last event was over (UTC)."]
    events: Annotated[int, "How many events, repeats left out."]
    purchases: Annotated[int, "How many of them are purchases."]


def gap_of(visit: Visit) -> timedelta:
    """How long a session lasts after an event; an unknown device counts as a desktop."""
    return GAPS.get(visit.device, LONGEST_GAP)


class UserSessions(WindowAggregate[Visit, Seen, Session]):
    """Keeps the event numbers of open sessions, so that an event which comes twice counts once.

    A session's row is final: the watermark has passed its end.
    """

    key = "user_id"
    time = "event_time"
    order = "event_time"
    hold = True
    windows = Sessions(gap_of)
    late: ClassVar[SideOutput[Visit] | None] = None
    """Admission lets nothing pass that would be late here."""

    def update(self, value: Seen | None, event: Visit) -> Seen:
        """Add an event."""
        seen = value or Seen(set(), set())
        seen.numbers.add(event.number)
        if event.action == "purchase":
            seen.purchases.add(event.number)
        return seen

    def combine(self, one: Seen, other: Seen) -> Seen:
        """Merge the events of two sessions."""
        more, less = (one, other) if len(one.numbers) >= len(other.numbers) else (other, one)
        more.numbers.update(less.numbers)
        more.purchases.update(less.purchases)
        return more

    def on_window(self, value: Seen, ctx: WindowContext[Session]) -> None:
        """Emit the session."""
        window = ctx.window
        ctx.emit(
            Session(ctx.key, window.start, window.end, len(value.numbers), len(value.purchases))
        )


class CorrectedSessions(UserSessions):
    """Takes events up to an hour late: a session may be emitted again, longer, replacing others.

    Rows that no longer count are reported by the start and end that they had.
    """

    hold = False
    allowed_lateness = timedelta(hours=1)
    late = SideOutput("late_visits", Visit)
    replaced = SideOutput("replaced_sessions", Session)

    def on_window(self, value: Seen, ctx: WindowContext[Session]) -> None:
        """Emit the session, and those that it replaces."""
        for window in ctx.replaced:
            ctx.output(self.replaced, Session(ctx.key, window.start, window.end, 0, 0))
        super().on_window(value, ctx)
