"""The watermark that the rows of the next batch prove, told by the log before they are read.

Spark runs a batch by the watermark that the batches before it led to: what its own rows let close
waits for one more batch. The log of an input tells the newest event time of each commit, so a batch
that takes all that waits can run by its own watermark. Its rows are compared with that of the batch
before, as ever; what they let close is closed with them. It is the batch of rows and the empty one
behind it in one, for all operators of Spark's own.

Nothing is told, and Spark's order stays, where a batch may take a part of what waits, where a
commit has no statistics of the column, or where an input of several has brought nothing yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from rivermark.lake.delta import delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.statistics import newest_added
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import Stream, lateness_of, needed_lateness, table_of
from rivermark.model.table import Table
from rivermark.model.time import MILLISECOND, millis_of
from rivermark.model.watermark import WATERMARK_AFTER
from rivermark.runtime.checkpoint.positions import places_between_commits
from rivermark.runtime.spark.watermarks import moving

SECOND: Final = timedelta(seconds=1)


@dataclass
class _Input:
    """One input: its log and identity, the column that moves it, and by how much it lags."""

    log: CommitLog
    identity: str
    column: str
    lag: timedelta
    reached: int | None = None

    def read(self, first: int, most_files: int, most_bytes: float) -> bool:
        """Take the commits from a version on; False where their rows prove nothing for sure."""
        files, size, newest = 0, 0, self.reached
        for actions in self.log.following(first):
            kinds = {kind for action in actions for kind in action}
            if "metaData" in kinds or "protocol" in kinds:
                return False
            adds = [a["add"] for a in actions if "add" in a and a["add"]["dataChange"]]
            if "remove" in kinds:
                continue  # A stream passes over commits that changed rows, and over copies.
            if (at := newest_added(actions, self.column)) is not None:
                newest = max(newest or 0, millis_of(at - self.lag))
            files, size = files + len(adds), size + sum(add["size"] for add in adds)
        if files > most_files or size > most_bytes:
            return False
        self.reached = newest
        return True


class BatchProof:
    """The watermark of a stream's next batch by its own rows, if it takes all that waits."""

    def __init__(
        self,
        lake: Lake,
        stream: Stream,
        checkpoint: str,
        most_files: int,
        most_bytes: Sequence[int | None],
    ) -> None:
        """`most_bytes` is after how many bytes of each input a batch ends, None for no limit."""
        self._last = 0
        self._checkpoint, self._most_files = checkpoint, most_files
        self._inputs = [self._input_of(lake, stream, table_of(read)) for read in stream.reads]
        self._most_bytes = [float("inf") if most is None else most for most in most_bytes]

    def _input_of(self, lake: Lake, stream: Stream, table: Table) -> _Input:
        path, column, lag = lake.path(table), moving(table), lateness_of(stream)
        if column == WATERMARK_AFTER.name:
            lag -= needed_lateness(stream)
        return _Input(CommitLog(path), str(delta_table(path).metadata().id), column, lag)

    def proved(self) -> int | None:
        """Milliseconds since 1970 that the next batch may run by; None where that is not known.

        What cannot be read is for the batch to report.
        """
        try:
            return self._proved()
        except (OSError, ValueError, KeyError, RivermarkError):
            return None

    def _proved(self) -> int | None:
        places = places_between_commits(self._checkpoint)
        for each, most in zip(self._inputs, self._most_bytes, strict=True):
            first = places.get(each.identity)
            if first is None or not each.read(first, self._most_files, most):
                return None
        reached = [each.reached for each in self._inputs]
        known = [millis for millis in reached if millis is not None]
        return min(known) if len(known) == len(reached) and min(known) > 0 else None

    def passes_a_border(self, steps: Sequence[timedelta]) -> bool:
        """True if that watermark lies beyond a multiple of a step that the last one had not passed.

        Of steps below a second there is always one: they say nothing.
        """
        reached, last = self.proved() or 0, self._last
        borders = [step // MILLISECOND for step in steps if step >= SECOND]
        self._last = max(reached, last)
        return any(reached // border > last // border for border in borders)
