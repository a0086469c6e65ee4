"""Triggers of a running query: at once when input comes, and never back to back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyarrow import fs

from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.integrity.log_entry import entry_path
from rivermark.lake.log import CommitLog

SHARE: Final = 1.3
"""A batch starts so many times the last one's duration after it: the rest is for other queries."""
LONGEST: Final = 30.0
"""Seconds after which a query is triggered although no commit was seen."""

Versions = tuple[int, ...]


@dataclass
class Trigger:
    """The condition on which a continuous query starts a batch; each kind of query sets its own.

    `min_interval`: seconds between the starts of two batches at least. `inputs`: paths of the
    tables whose commits are its input. `first_batch_alone`: the first batch of a run must not share
    the machine with many others; a continuous run starts such a query alone, a bounded one beside
    two others at most. `share`: how many times its duration a batch starts after the last one.
    """

    min_interval: float
    inputs: list[str] = field(default_factory=list)
    first_batch_alone: bool = False
    share: float = SHARE
    closes: Callable[[], bool] = field(default=lambda: False)
    """True if new commits let a window close: then a batch begins before `min_interval` is over."""

    def again(self) -> bool:
        """True if to trigger again after a batch: for what it left, or what it allowed to close."""
        return True

    def timer(self) -> int:
        """A number that changes when the passing of time alone is a reason to trigger."""
        return 0


@dataclass
class TriggerPolicy:
    """The trigger of one query; moments are seconds of a monotonic clock.

    An idle query is triggered as soon as an input has a new commit. After a batch it is triggered
    again, for what is left of the input or what a batch without data would close: `min_interval`
    after the batch started or `share` times its duration, whatever is later. Where input comes
    without pause that is also when it takes it, but for commits that let a window close: they only
    wait for `rested`, by its duration alone.
    """

    min_interval: float
    started: float
    versions: Versions
    triggered: bool = True
    had_batch: bool = False
    idle_until: float = 0.0
    rested: float = 0.0
    share: float = SHARE

    def ended(self, now: float, *, had_batch: bool) -> None:
        """Record that the trigger is over, and whether it had a batch."""
        self.triggered, self.had_batch = False, had_batch
        self.rested = self.started + self.share * (now - self.started) if had_batch else now
        self.idle_until = max(self.started + self.min_interval, self.rested) if had_batch else now

    def due(self, now: float, newest: Versions) -> bool:
        """Returns True if to trigger now that the inputs are at these versions."""
        if self.triggered or now < self.idle_until:
            return False
        return self.had_batch or newest != self.versions or now - self.started > LONGEST

    def start(self, now: float, newest: Versions) -> None:
        """Record a trigger, and the versions that it will read at least."""
        self.triggered, self.started, self.versions = True, now, newest


class Inputs:
    """The newest version of each input, by asking for the next commit's file. Starts no JVM."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.local = all(is_local(path) for path in paths)
        self._logs = [filesystem(f"{path}/_delta_log") for path in paths]
        self._newest = [max(CommitLog(path).versions(), default=-1) for path in paths]

    def newest(self) -> Versions:
        """The newest version of each now."""
        for n, (store, folder) in enumerate(self._logs):
            while self._exists(store, entry_path(folder, self._newest[n] + 1)):
                self._newest[n] += 1
        return tuple(self._newest)

    def _exists(self, store: fs.FileSystem, path: str) -> bool:
        if self.local:
            return Path(path).exists()
        info: fs.FileInfo = store.get_file_info(path)
        return bool(info.type == fs.FileType.File)
