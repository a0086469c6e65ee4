"""Sessions, computed from a whole story at once, without the engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

MINUTE = 60_000
GAPS = {"phone": 10 * MINUTE, "desktop": 30 * MINUTE}

Seen = tuple[str, int, int, str, str]
"""Visitor, number, time (ms), action, device."""


def sessions(story: Iterable[Seen]) -> list[tuple[str, int, int, int, int]]:
    """Visitor, begin, end, events and purchases of each session; repeats count once.

    Events of a visitor belong together where one's time and the other's, each with its own gap
    behind it, touch. In order of time that is: an event joins if it comes no later than the
    furthest end so far.
    """
    visitors: dict[str, dict[int, Seen]] = defaultdict(dict)
    for event in story:
        visitors[event[0]].setdefault(event[1], event)
    found = []
    for visitor, events in visitors.items():
        open_session: list[Seen] = []
        end = -1
        for event in sorted(events.values(), key=lambda each: each[2]):
            if open_session and event[2] > end:
                found.append(told(visitor, open_session, end))
                open_session = []
            reach = event[2] + GAPS[event[4]]
            end = max(end, reach) if open_session else reach
            open_session.append(event)
        found.append(told(visitor, open_session, end))
    return sorted(found)


def told(visitor: str, events: list[Seen], end: int) -> tuple[str, int, int, int, int]:
    """A session's row."""
    purchases = sum(action == "purchase" for _, _, _, action, _ in events)
    return visitor, events[0][2], end, len(events), purchases
