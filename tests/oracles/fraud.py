"""Fraud alerts, computed from a whole story at once, without the engine.

Events are numbered by their key; two with one number are one that came twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from itertools import pairwise

MINUTE = 60_000

Event = tuple[str, int, int, object]
"""Account or card, number, time (ms), and what counts: whether it succeeded, or the amount."""


def in_order(story: Iterable[Event]) -> dict[str, list[Event]]:
    """Events by key, once each, in order of time; of equals the one that arrived first."""
    keys: dict[str, dict[int, Event]] = defaultdict(dict)
    for event in sorted(story, key=lambda each: each[2]):
        keys[event[0]].setdefault(event[1], event)
    return {key: list(events.values()) for key, events in keys.items()}


def guessed_passwords(story: Iterable[Event]) -> list[tuple[str, int, list[int]]]:
    """Account, time and login numbers: three refused in a row and a success, in ten minutes."""
    found = []
    for account, logins in in_order(story).items():
        for place in range(3, len(logins)):
            four = logins[place - 3 : place + 1]
            row = [bool(each[3]) for each in four] == [False, False, False, True]
            if row and four[3][2] - four[0][2] <= 10 * MINUTE:
                found.append((account, four[3][2], [each[1] for each in four]))
    return sorted(found)


def small_then_large(story: Iterable[Event]) -> list[tuple[str, int, list[int]]]:
    """Card, time and payment numbers: less than 1, and next more than 500, within a minute."""
    found = []
    for card, payments in in_order(story).items():
        for one, other in pairwise(payments):
            trial = Decimal(str(one[3])) < 1 and Decimal(str(other[3])) > 500
            if trial and other[2] - one[2] <= MINUTE:
                found.append((card, other[2], [one[1], other[1]]))
    return sorted(found)


def many_payments(story: Iterable[Event]) -> list[tuple[str, int, list[int]]]:
    """Card, time and payment numbers: five within a minute, none of them used before."""
    found = []
    for card, payments in in_order(story).items():
        free = 0
        for place in range(4, len(payments)):
            five = payments[place - 4 : place + 1]
            if place - 4 >= free and five[4][2] - five[0][2] <= MINUTE:
                found.append((card, five[4][2], [each[1] for each in five]))
                free = place + 1
    return sorted(found)
