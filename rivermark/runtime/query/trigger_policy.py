"""When a running query looks for input: at once when there is some, and never back to back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyarrow import fs

from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.log import CommitLog

SHARE: Final = 1.3
"""A batch begins so many times the last one's duration after it: the rest is for the others."""
LONGEST: Final = 30.0
"""Seconds after which a query looks although nothing was seen to come."""

Versions = tuple[int, ...]


@dataclass
class Trigger:
    """What lets a continuous query start a batch; each kind of query sets its own.

    `min_interval`: seconds between the starts of two batches at least. `inputs`: paths of the
    tables whose commits are its input. `first_batch_alone`: the first batch of a run must not share
    the machine with many others; a continuous run starts such a query alone, a bounded one beside
    one other.
    """

    min_interval: float
    inputs: list[str] = field(default_factory=list)
    first_batch_alone: bool = False

    def again(self) -> bool:
        """Whether to look again after a batch: for what it left, or what it allowed to close."""
        return True

    def timer(self) -> int:
        """A number that changes when the passing of time alone is a reason to look."""
        return 0


@dataclass
class Pace:
    """When one query looks; moments are seconds of a monotonic clock.

    At rest it looks as soon as an input has a new commit. After a batch it looks again, for what is
    left of the input or for what a batch without data would close, `least` seconds after the batch
    began or `SHARE` times its duration, whatever is later. So where input comes without pause, one
    batch takes the new rows and closes what the rows before allowed.
    """

    least: float
    begun: float
    versions: Versions
    looking: bool = True
    worked: bool = False
    rests_until: float = 0.0

    def ended(self, now: float, *, worked: bool) -> None:
        """Note that the look is over, and whether a batch came of it."""
        self.looking, self.worked = False, worked
        pause = max(self.least, SHARE * (now - self.begun))
        self.rests_until = self.begun + pause if worked else now

    def due(self, now: float, newest: Versions) -> bool:
        """Whether to look now, when the inputs have come to these versions."""
        if self.looking or now < self.rests_until:
            return False
        return self.worked or newest != self.versions or now - self.begun > LONGEST

    def begin(self, now: float, newest: Versions) -> None:
        """Note that it looks, and what it will find at least."""
        self.looking, self.begun, self.versions = True, now, newest


class Inputs:
    """The newest version of each input, by asking for the next commit's file. Starts no JVM."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Find out how far they are."""
        self.local = all(is_local(path) for path in paths)
        self._logs = [filesystem(f"{path}/_delta_log") for path in paths]
        self._newest = [max(CommitLog(path).versions(), default=-1) for path in paths]

    def newest(self) -> Versions:
        """How far they are now."""
        for n, (store, folder) in enumerate(self._logs):
            while self._exists(store, f"{folder}/{self._newest[n] + 1:020d}.json"):
                self._newest[n] += 1
        return tuple(self._newest)

    def _exists(self, store: fs.FileSystem, path: str) -> bool:
        if self.local:
            return Path(path).exists()
        info: fs.FileInfo = store.get_file_info(path)
        return bool(info.type == fs.FileType.File)
