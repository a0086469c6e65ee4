"""The event-time clock of the door: how far the stream has come, told by the files before.

A file's rows are judged by the newest event time of *earlier* files, so the verdict on a row is a
function of the order of arrival alone: it is the same however files are grouped into batches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any


@dataclass(frozen=True)
class Clock:
    """The newest admitted event time so far (UTC), or None before the first.

    `doubted` remembers that the file before ran ahead by more than the contract's `max_jump`.
    """

    newest: datetime | None = None
    doubted: bool = False

    def to_json(self) -> dict[str, Any]:
        """As it is kept in the metadata of a raw commit."""
        newest = self.newest.isoformat() if self.newest else None
        return {"newest": newest, "doubted": self.doubted}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Clock:
        """As `to_json` wrote it."""
        newest = datetime.fromisoformat(found["newest"]) if found.get("newest") else None
        return cls(newest, bool(found.get("doubted")))


@dataclass(frozen=True)
class Verdict:
    """By what the rows of one file are judged; None means: no bound.

    Rows at or before `watermark` are late. Rows after `ceiling` run ahead of the stream and are set
    aside. Both are instants in UTC.
    """

    watermark: datetime | None = None
    ceiling: datetime | None = None

    def to_json(self) -> list[str | None]:
        """As it is kept in the metadata of a raw commit."""
        return [t.isoformat() if t else None for t in (self.watermark, self.ceiling)]

    @classmethod
    def from_json(cls, found: list[str | None]) -> Verdict:
        """As `to_json` wrote it."""
        watermark, ceiling = (datetime.fromisoformat(t) if t else None for t in found)
        return cls(watermark, ceiling)


def judge(
    clock: Clock,
    oldest: datetime | None,
    newest_below: datetime | None,
    newest: datetime | None,
    lateness: timedelta | None,
    max_jump: timedelta | None,
) -> tuple[Verdict, Clock]:
    """The verdict on a file's rows, and the clock after it.

    `oldest` and `newest` are the file's valid event times; `newest_below` is the newest that is not
    beyond `clock.newest + max_jump`. Where even the oldest row is beyond, the whole file jumps: the
    first such file is doubted and set aside, the second in a row is believed.
    """
    watermark = clock.newest - lateness if clock.newest and lateness is not None else None
    if newest is None:
        return Verdict(watermark), clock
    if max_jump is None or clock.newest is None:
        return Verdict(watermark), Clock(later(clock.newest, newest))
    ceiling = clock.newest + max_jump
    jumps = oldest is not None and oldest > ceiling
    if jumps and clock.doubted:
        return Verdict(watermark), Clock(newest)
    if jumps:
        return Verdict(watermark, ceiling), replace(clock, doubted=True)
    return Verdict(watermark, ceiling), Clock(later(clock.newest, newest_below))


def later(left: datetime | None, right: datetime | None) -> datetime | None:
    """The later of two instants, either of which may be missing."""
    if left is None or right is None:
        return left or right
    return max(left, right)


def utc(moment: datetime | None) -> datetime | None:
    """A moment that Spark gave without a zone (its session is in UTC), with it."""
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment
