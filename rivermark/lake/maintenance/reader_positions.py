"""A stream that reads a table, and what it has not read yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rivermark.lake.log import CommitLog


@dataclass(frozen=True)
class Reader:
    """How far a stream has read a table: `version` is the first one that it may still need.

    `snapshot` says that it is reading that version as a whole, and not what was committed since.
    """

    stream: str
    version: int
    snapshot: bool = False


def first_needed(readers: Sequence[Reader]) -> Reader | None:
    """The reader that lags most."""
    return min(readers, key=lambda r: r.version, default=None)


def unread(log: CommitLog, readers: Sequence[Reader], before: int) -> Reader | None:
    """A reader that has still to read rows committed before that version, if there is one."""
    for reader in readers:
        if not reader.snapshot and log.adds_rows(reader.version, before):
            return reader
    return None
