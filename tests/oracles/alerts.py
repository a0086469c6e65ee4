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


def jumps(readings: Iterable[Read], told: list[tuple[str, int, Decimal, int]]) -> list[object]:
    """Sensor, time, degrees, degrees before, threshold and version of each jump.

    Thresholds are told with sensor, time, degrees and version.
    """
    found: list[object] = []
    for sensor, story in by_sensor(readings).items():
        for (before_at, before), (at, degrees) in pairwise(story):
            threshold, version = newest(told, sensor, at) or newest(told, "*", at) or (None, 0)
            if at - before_at < HOUR and threshold and abs(degrees - before) > threshold:
                found.append((sensor, at, degrees, before, threshold, version))
    return sorted(found, key=repr)


def newest(
    told: list[tuple[str, int, Decimal, int]], sensor: str, moment: int
) -> tuple[Decimal, int] | None:
    """The threshold of a sensor, or of '*', that holds at a moment, with its version."""
    held = [each for each in told if each[0] == sensor and each[1] <= moment]
    if not held:
        return None
    _, _, degrees, version = sorted(held, key=lambda each: each[1])[-1]
    return (degrees, version) if degrees else None


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
    """Sensor, time, and time of the level, of each reading above 100 degrees in smoke.

    Two readings of one sensor and time are one that came twice.
    """
    found = set()
    for sensor, at, degrees in readings:
        known = sorted((each for each in levels if each[0] <= at), key=lambda each: each[0])
        if degrees > 100 and known and known[-1][1] == "High":
            found.add((sensor, at, known[-1][0]))
    return sorted(found)


def counts(readings: Iterable[Read], size: int) -> Iterator[tuple[str, int, int, Decimal]]:
    """Sensor, end of window, readings and their sum, of every window that has any.

    Two readings of one sensor and time are one that came twice: the first counts.
    """
    once: dict[tuple[str, int], Decimal] = {}
    for sensor, at, degrees in readings:
        once.setdefault((sensor, at), degrees)
    windows: dict[tuple[str, int], list[Decimal]] = defaultdict(list)
    for (sensor, at), degrees in once.items():
        windows[sensor, (at // size + 1) * size].append(degrees)
    for (sensor, end), held in sorted(windows.items()):
        yield sensor, end, len(held), sum(held, Decimal(0))
