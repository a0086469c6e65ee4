"""Named times of the stories in milliseconds, and which of their events came in time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from rivermark.testing import InputEvent

E = TypeVar("E")

NOON: Final = 1_577_880_000_000  # 2020-01-01T12:00:00Z
SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE


def accepted(story: Sequence[E], late: Iterable[InputEvent]) -> list[E]:
    """The story without the events that came too late, in order of arrival.

    Of equal events the last ones are late: the watermark only rises.
    """
    backwards = list(reversed(story))
    for each in late:
        backwards.remove(each.event)
    return backwards[::-1]
