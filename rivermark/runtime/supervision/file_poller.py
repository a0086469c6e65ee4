"""Looks for input outside Spark's own sources, in its own thread: reports must not delay it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from rivermark.runtime.query.base import Backlog

POLL_SECONDS: Final = 0.1
"""Seconds between two looks into a landing folder."""
SHARE: Final = 0.05
"""A look may take this share of the time at most: a folder of 100,000 files is seen less often."""


class Poller:
    """Polls the backlogs of a run in turn, between entering and leaving it as a context."""

    def __init__(self, backlogs: Mapping[str, Backlog]) -> None:
        self._backlogs = backlogs
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="poller", daemon=True)
        self.failed: tuple[str, Exception] | None = None
        """The first stream whose backlog raised; nothing is polled after it."""

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End, after the look under way."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        due = dict.fromkeys(self._backlogs, 0.0)
        while not self._ending.wait(POLL_SECONDS):
            for name, backlog in self._backlogs.items():
                began = time.monotonic()
                if began < due[name]:
                    continue
                try:
                    backlog.poll()
                except Exception as error:
                    self.failed = name, error
                    return
                ended = time.monotonic()
                due[name] = ended + (ended - began) / SHARE if ended - began > 0.02 else 0.0
