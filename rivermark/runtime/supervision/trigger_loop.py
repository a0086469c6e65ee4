"""One thread that wakes the queries of a run when their inputs have new commits."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import Final

from rivermark.runtime.query.base import QueryHost
from rivermark.runtime.query.trigger_policy import Inputs, TriggerPolicy, Versions

LOG = logging.getLogger("rivermark")
TICK: Final = 0.05
"""Seconds between two reads of the inputs' logs, where they lie on a disk."""
FAR_TICK: Final = 1.0
"""The same where a read is a request."""


@dataclass
class _Triggered:
    host: QueryHost
    inputs: Inputs
    policy: TriggerPolicy
    batches: int = 0
    checked_at: float = 0.0
    newest: Versions = ()
    taken: Versions = ()
    """The versions of the inputs now, and those that were there when its last batch began that has
    ended."""
    looked_at: Versions = ()
    closes: bool = False

    @property
    def unread(self) -> int:
        """Number of commits of its inputs that no finished batch has taken."""
        return sum(max(now - then, 0) for now, then in zip(self.newest, self.taken, strict=True))


class TriggerLoop:
    """Wakes each started query by its trigger policy, until it is stopped."""

    def __init__(self) -> None:
        self._queries: list[_Triggered] = []
        self._alone: _Triggered | None = None
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="triggers", daemon=True)

    def add(self, host: QueryHost) -> None:
        """Wake a query that was just started from now on: it is triggered already."""
        inputs = Inputs(host.trigger.inputs)
        newest = (*inputs.newest(), host.trigger.timer())
        trigger = host.trigger
        policy = TriggerPolicy(trigger.min_interval, time.monotonic(), newest, share=trigger.share)
        # Commits since the start of the query may be missed by its first trigger.
        policy.had_batch = True
        versions = inputs.newest()
        with self._lock:
            self._queries.append(_Triggered(host, inputs, policy, newest=versions, taken=versions))
        if not self._thread.is_alive():
            self._thread.start()

    def remove(self, host: QueryHost) -> None:
        """Wake the query no more."""
        with self._lock:
            for query in [q for q in self._queries if q.host is host]:
                self._drop(query)

    def unread(self, host: QueryHost) -> int:
        """Number of commits of a query's inputs that wait for a batch of it to end."""
        return next((query.unread for query in [*self._queries] if query.host is host), 0)

    def stop(self) -> None:
        """Wake no query any more. The one that was woken last has started by then."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()
            time.sleep(TICK)

    def _run(self) -> None:
        while not self._ending.wait(TICK):
            with self._lock:
                for query in [*self._queries]:
                    self._step_or_drop(query)

    def _step_or_drop(self, query: _Triggered) -> None:
        try:
            self._step(query)
        except Exception as error:
            # What broke shows in the query itself, where the supervisor finds it.
            LOG.debug("no longer woken: %s: %s", query.host.stream.name, error)
            self._drop(query)

    def _step(self, query: _Triggered) -> None:
        now, policy, host = time.monotonic(), query.policy, query.host
        if host.batches != query.batches:
            # Also when it was slow to begin, and seemed to have no input.
            policy.triggered = True
        if now - query.checked_at >= FAR_TICK:
            query.checked_at, query.newest = now, query.inputs.newest()
        if policy.triggered:
            if now - policy.started < TICK or host.active():
                return
            had_batch = host.batches != query.batches
            policy.ended(now, had_batch=had_batch)
            policy.had_batch = had_batch and host.trigger.again()
            query.batches, query.taken = host.batches, policy.versions[:-1]
            self._release(query)
        if now < policy.rested:
            return
        if query.inputs.local:
            query.newest = query.inputs.newest()
        if now < policy.idle_until and not self._closes(query):
            return
        newest = (*query.newest, host.trigger.timer())
        if (now < policy.idle_until or policy.due(now, newest)) and self._has_room(query):
            policy.start(now, newest)
            query.closes = False
            host.wake()

    def _closes(self, query: _Triggered) -> bool:
        """True if commits that were not looked at yet let a window of the query close."""
        if query.newest == query.looked_at:
            return query.closes
        query.looked_at = query.newest
        query.closes = query.host.trigger.closes()
        return query.closes

    def _has_room(self, query: _Triggered) -> bool:
        """True if a query may start a batch: not beside a first batch that has to be alone."""
        if query.host.trigger.first_batch_alone and not query.batches and self._alone is None:
            self._alone = query
        if self._alone is None:
            return True
        others = (q.policy.triggered for q in self._queries if q is not query)
        return self._alone is query and not any(others)

    def _drop(self, query: _Triggered) -> None:
        self._queries.remove(query)
        self._release(query)

    def _release(self, query: _Triggered) -> None:
        """Let the others start batches again."""
        if self._alone is query:
            self._alone = None
