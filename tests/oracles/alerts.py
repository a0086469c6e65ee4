"""The reading alerts, computed from a whole story at once, without the engine.

Times are milliseconds since the epoch (UTC). Stories are in order of arrival.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import pairwise

SECOND = 1_000
HOUR = 3_600 * SECOND

Read = tuple[str, int, Decimal]
"""A sensor, a time, degrees."""


def by_sensor(readings: Iterable[Read]) -> dict[str, list[tuple[int, Decimal]]]:
    """Times and degrees per sensor, in order of time; of equals the one that arrived first."""
    found: dict[str, list[tuple[int, Decimal]]] = defaultdict(list)
    for sensor, at, degrees in sorted(readings, key=lambda each: each[1]):
        found[sensor].append((at, degrees))
    return found


def thresholds_at(updates: Iterable[Read], moment: int) -> dict[str, tuple[Decimal, int]]:
    """The thresholds that hold at a moment, each with the number of changes up to it."""
    rules: dict[str, tuple[Decimal, int]] = {}
    changes = 0
    for sensor, at, degrees in sorted(updates, key=lambda each: each[1]):
        known = rules.get(sensor, (Decimal(0), 0))[0]
        if at > moment or known == degrees:
            continue
        changes += 1
        rules[sensor] = (degrees, changes)
        if not degrees:
            del rules[sensor]
    return rules


def jumps(readings: Iterable[Read], updates: list[Read]) -> list[tuple[object, ...]]:
    """Sensor, time, degrees, degrees before, threshold and version of each jump."""
    found = []
    for sensor, story in by_sensor(readings).items():
        for (before_at, before), (at, degrees) in pairwise(story):
            rules = thresholds_at(updates, at)
            threshold, version = rules.get(sensor) or rules.get("*") or (None, 0)
            if at - before_at < HOUR and threshold and abs(degrees - before) > threshold:
                found.append((sensor, at, degrees, before, threshold, version))
    return sorted(found)


def rises(readings: Iterable[Read]) -> list[tuple[str, int, int]]:
    """Sensor, begin of the rise and a second later, for each rise that lasts a second."""
    found = []
    for sensor, story in by_sensor(readings).items():
        place = 1
        while place < len(story):
            at, degrees = story[place]
            before_at, before = story[place - 1]
            if degrees <= before or at - before_at >= HOUR:
                place += 1
                continue
            end = next((p for p, (then, _) in enumerate(story) if then > at + SECOND), len(story))
            lower = (p for p in range(place + 1, end) if story[p][1] < story[p - 1][1])
            broken = next(lower, None)
            if broken is None:
                found.append((sensor, at, at + SECOND))
            place = end if broken is None else broken + 1
    return sorted(found)


def smoke(readings: Iterable[Read], levels: list[tuple[int, str]]) -> list[tuple[str, int, int]]:
    """Sensor, time, and since when there is smoke, of each reading above 100 degrees in smoke."""
    found = []
    for sensor, at, degrees in readings:
        since = smoke_since(levels, at)
        if degrees > 100 and since is not None:
            found.append((sensor, at, since))
    return sorted(found)


def smoke_since(levels: list[tuple[int, str]], moment: int) -> int | None:
    """When the smoke began that there is at a moment; None where there is none."""
    since = None
    for at, level in sorted(levels, key=lambda each: each[0]):
        if at > moment:
            break
        since = (at if since is None else since) if level == "High" else None
    return since


def counts(readings: Iterable[Read], size: int) -> Iterator[tuple[str, int, int, Decimal]]:
    """Sensor, end of window, readings and their sum, of every window that has any."""
    windows: dict[tuple[str, int], list[Decimal]] = defaultdict(list)
    for sensor, at, degrees in readings:
        windows[sensor, (at // size + 1) * size].append(degrees)
    for (sensor, end), held in sorted(windows.items()):
        yield sensor, end, len(held), sum(held, Decimal(0))
