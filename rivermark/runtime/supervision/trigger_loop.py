"""One thread that wakes the queries of a run when their inputs have something for them."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import Final

from rivermark.runtime.query.base import QueryHost
from rivermark.runtime.query.trigger_policy import Inputs, Pace

LOG = logging.getLogger("rivermark")
TICK: Final = 0.05
"""Seconds between two looks at the inputs' logs, where they lie on a disk."""
FAR_TICK: Final = 1.0
"""The same where asking costs a request."""


@dataclass
class _Paced:
    host: QueryHost
    inputs: Inputs
    pace: Pace
    batches: int = 0
    asked: float = 0.0


class TriggerLoop:
    """Wakes each started query by its trigger policy, until it is stopped."""

    def __init__(self) -> None:
        self._paced: list[_Paced] = []
        self._alone: _Paced | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="triggers", daemon=True)

    def add(self, host: QueryHost) -> None:
        """Wake a query that was just started from now on: it is looking already."""
        inputs = Inputs(host.trigger.inputs)
        newest = (*inputs.newest(), host.trigger.timer())
        pace = Pace(host.trigger.min_interval, time.monotonic(), newest)
        # Commits since the start of the query may be missed by its first look.
        pace.worked = True
        self._paced.append(_Paced(host, inputs, pace))
        if not self._thread.is_alive():
            self._thread.start()

    def remove(self, host: QueryHost) -> None:
        """Wake the query no more."""
        for paced in [p for p in self._paced if p.host is host]:
            self._drop(paced)

    def stop(self) -> None:
        """Wake no query any more. The one that was woken last has begun by then."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()
            time.sleep(TICK)

    def _run(self) -> None:
        while not self._ending.wait(TICK):
            for paced in [*self._paced]:
                try:
                    self._step(paced)
                except Exception as error:
                    # What broke shows in the query itself, where the supervisor finds it.
                    LOG.debug("no longer woken: %s: %s", paced.host.stream.name, error)
                    self._drop(paced)

    def _step(self, paced: _Paced) -> None:
        now, pace, host = time.monotonic(), paced.pace, paced.host
        if host.batches != paced.batches:
            # Also when it was slow to begin, and seemed to have found nothing.
            pace.looking = True
        if pace.looking:
            if now - pace.begun < TICK or host.active():
                return
            worked = host.batches != paced.batches
            pace.ended(now, worked=worked)
            pace.worked = worked and host.trigger.again()
            paced.batches = host.batches
            self._release(paced)
        if now < pace.rests_until or (not paced.inputs.local and now - paced.asked < FAR_TICK):
            return
        paced.asked = now
        newest = (*paced.inputs.newest(), host.trigger.timer())
        if pace.due(now, newest) and self._has_room(paced):
            pace.begin(now, newest)
            host.wake()

    def _has_room(self, paced: _Paced) -> bool:
        """Whether a query may begin: not beside a first batch that has to be alone."""
        if paced.host.trigger.first_batch_alone and not paced.batches and self._alone is None:
            self._alone = paced
        if self._alone is None:
            return True
        others = (p.pace.looking for p in self._paced if p is not paced)
        return self._alone is paced and not any(others)

    def _drop(self, paced: _Paced) -> None:
        if paced in self._paced:
            self._paced.remove(paced)
        self._release(paced)

    def _release(self, paced: _Paced) -> None:
        """Let the others begin again."""
        if self._alone is paced:
            self._alone = None
