"""Events that the engine's tests are told with."""

from __future__ import annotations

from typing import Final

import msgspec

NOON: Final = 1_577_880_000_000  # 2020-01-01T12:00:00Z
SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE


class Reading(msgspec.Struct, frozen=True):
    sensor: str
    at: int
    value: int = 0


class Note(msgspec.Struct, frozen=True):
    text: str


def reading(sensor: str = "a", at: int = NOON, value: int = 0) -> Reading:
    return Reading(sensor, at, value)
