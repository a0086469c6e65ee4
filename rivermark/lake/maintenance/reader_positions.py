"""A stream that reads a table, and what it still needs of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rivermark.lake.log import CommitLog


@dataclass(frozen=True)
class Reader:
    """The needs of a stream that reads a table: rows that it has not read, and log entries.

    `version` is the first one of which it may still read rows. `snapshot` says that it is reading
    that version as a whole, and what was committed since afterwards.

    `log_from` is the oldest version that the log must be able to give. It lies before `version`:
    at a start Spark goes through the log of its last finished batch once more (it plans the batch
    and drops it without opening a file), and a compaction opens the version before `version`.
    """

    stream: str
    version: int
    snapshot: bool = False
    log_from: int = -1
    savepoint: str = ""
    """The id where a savepoint of the stream needs it, and not the stream itself."""

    def __post_init__(self) -> None:
        """Without a `log_from` the version before the rows is needed, as for a compaction."""
        before = self.behind if self.log_from < 0 else min(self.log_from, self.behind)
        object.__setattr__(self, "log_from", max(0, before))

    @property
    def behind(self) -> int:
        """The newest version of which it reads no row by a commit any more."""
        return self.version if self.snapshot else self.version - 1

    def lags(self, log: CommitLog, before: int) -> bool:
        """Returns True if it has still to read rows that were committed before that version."""
        return log.adds_rows(self.behind + 1, before)


def lagging(log: CommitLog, readers: Sequence[Reader], before: int) -> Reader | None:
    """The reader that lags most of those that have still to read rows from before a version."""
    behind = [reader for reader in readers if reader.lags(log, before)]
    return min(behind, key=lambda reader: reader.behind, default=None)
