"""The memory of the restart sensor between ticks, small enough for its cursor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Self

import msgspec

KEPT_STARTS: Final = 50
"""Starts remembered a group: more than any strategy looks back, and a cursor of some kilobytes."""

FORMAT: Final = 1


@dataclass(frozen=True, kw_only=True)
class GroupMemory:
    """The starts of one group since a person last asked for it, and the number of the last one.

    `number` only ever grows: it makes the run key of each incarnation a new one. Cursors store the
    names of the fields.
    """

    number: int = 0
    starts: tuple[datetime, ...] = ()
    wished_at: datetime | None = None

    def under(self, desired_at: datetime | None) -> Self:
        """The memory under a desired state: one that was set since forgives earlier failures."""
        if desired_at == self.wished_at:
            return self
        return replace(self, starts=(), wished_at=desired_at)

    def started(self, number: int, starts: tuple[datetime, ...], at: datetime) -> Self:
        """The memory after one more start."""
        return replace(self, number=number, starts=(*starts, at)[-KEPT_STARTS:])


@dataclass(frozen=True, kw_only=True)
class RestartHistory:
    """The memory of all groups, and which incidents were reported (`told`, as cursors have it).

    `used` is a number up to which run keys of any group may have been used before.
    """

    groups: dict[str, GroupMemory] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    format: int = FORMAT
    used: int = 0

    def of(self, group: str) -> GroupMemory:
        """The memory of one group; that of a new one has only the numbers used before."""
        return self.groups.get(group, GroupMemory(number=self.used))

    def to_cursor(self) -> str:
        """The text to be kept."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_cursor(cls, cursor: str | None) -> RestartHistory:
        """The history in a cursor; an empty one for any other text.

        A lost history costs only forgiven failures: the next number is also read from the runs.
        """
        try:
            history = msgspec.json.decode(cursor or "", type=RestartHistory)
        except (msgspec.DecodeError, UnicodeError):
            return RestartHistory()
        return history if history.format == FORMAT else RestartHistory()
