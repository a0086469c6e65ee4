"""Looks for input outside Spark's own sources, in its own thread: reports must not delay it."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from rivermark.runtime.query.base import Backlog

POLL_SECONDS: Final = 0.1
"""Seconds between two looks into a landing folder."""
SHARE: Final = 0.05
"""A look may take this share of the time at most: a folder of 100,000 files is seen less often."""
WAITED_SECONDS: Final = 5.0
"""The longest pause after a look that only waited, as for a broker that does not answer: such a
look costs this machine nothing."""

POLLS: Final = 5
"""Of so many looks the quickest says what a look costs: others may have waited for a processor."""


@dataclass
class PollInterval:
    """The pause before the next poll, by what the last polls took that planned nothing.

    Planning is work that input brings, and the next input does not wait for it.
    """

    pauses: deque[float] = field(default_factory=lambda: deque(maxlen=POLLS))

    def after(self, took: float, worked: float, *, planned: int) -> float:
        """Seconds until the next poll."""
        own = pause(took, worked)
        if not planned:
            self.pauses.append(own)
        return min([own, *self.pauses])


class Poller:
    """Polls the backlogs of a run in turn, from the first `add` until it is stopped."""

    def __init__(self) -> None:
        self._backlogs: dict[str, Backlog] = {}
        self._due: dict[str, float] = {}
        self._intervals: dict[str, PollInterval] = {}
        self._failures: dict[str, Exception] = {}
        self._lock = threading.Lock()
        # Held while a folder is listed, which may take long: only `remove` waits for that.
        self._polling = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="poller", daemon=True)

    def add(self, name: str, backlog: Backlog) -> None:
        """Poll the backlog of a stream, in place of an earlier one."""
        with self._lock:
            self._backlogs[name], self._due[name] = backlog, 0.0
            self._intervals[name] = PollInterval()
        if not self._thread.is_alive():
            self._thread.start()

    def remove(self, name: str) -> None:
        """Poll the stream's backlog no more, after the look under way."""
        with self._lock:
            self._backlogs.pop(name, None)
        with self._polling:
            pass

    def failures(self) -> dict[str, Exception]:
        """The errors since the last call, by stream; these streams are polled no more."""
        with self._lock:
            failures, self._failures = self._failures, {}
        return failures

    def stop(self) -> None:
        """End, after the look under way."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._ending.wait(POLL_SECONDS):
            for name in [*self._backlogs]:
                with self._polling:
                    self._poll(name)

    def _poll(self, name: str) -> None:
        began, worked = time.monotonic(), time.thread_time()
        with self._lock:
            backlog = self._backlogs.get(name)
            if backlog is None or began < self._due[name]:
                return
            interval = self._intervals[name]
        try:
            planned = backlog.poll()
        except Exception as error:
            with self._lock:
                self._failures[name] = error
                self._backlogs.pop(name, None)
            return
        now = time.monotonic()
        worked = time.thread_time() - worked
        self._due[name] = now + interval.after(now - began, worked, planned=planned)


def pause(took: float, worked: float) -> float:
    """Seconds until the next look, after one that took so long, `worked` of it at work."""
    if took <= 0.02:
        return 0.0
    return min(took / SHARE, max(worked / SHARE, WAITED_SECONDS))
