"""The clients of one service in a Python worker: they, and what they found, outlive a batch."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import timedelta
from queue import Empty, LifoQueue
from threading import Lock
from typing import Any, Final, Literal, NamedTuple

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type

from rivermark.connect.http import pause_before
from rivermark.operators.enrichment.lookup import Key, Lookup, LookupClient, LookupFailed

TICK_SECONDS: Final = 0.05
"""How often requests that take too long are looked for."""
Status = Literal["found", "absent", "failed", "timed out"]


class Outcome(NamedTuple):
    """The outcome of a key: its values, or why there are none, and whether that may pass."""

    status: Status
    values: Sequence[Any] | None = None
    error: str | None = None
    passes: bool = False


@dataclass(frozen=True)
class Terms:
    """The terms on which one worker uses a service.

    Up to `in_flight` requests at a time, each within `timeout`, up to `attempts` times. What was
    found, or found to be absent, is kept for `cache_for`, of up to `cache_rows` keys.
    """

    on: tuple[str, ...]
    in_flight: int
    timeout: timedelta
    attempts: int
    cache_for: timedelta
    cache_rows: int


class Cache:
    """Outcomes by key, each for a time; the one that was used longest ago makes room."""

    def __init__(self, life: timedelta, most: int) -> None:
        self._life = life.total_seconds()
        self._most = most
        self._kept: OrderedDict[Key, tuple[float, Outcome]] = OrderedDict()

    def get(self, key: Key) -> Outcome | None:
        """The outcome of a key, while it lasts."""
        until, outcome = self._kept.get(key, (0.0, None))
        if outcome is None or until < time.monotonic():
            return None
        self._kept.move_to_end(key)
        return outcome

    def put(self, key: Key, outcome: Outcome) -> None:
        """Keep an outcome."""
        if self._most and self._life:
            self._kept[key] = (time.monotonic() + self._life, outcome)
            self._kept.move_to_end(key)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)


class _Request:
    """A request of some keys, which another thread may end."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self.keys = keys
        self._lock = Lock()
        self._client: LookupClient | None = None
        self._until = 0.0
        self._is_ended = False
        self.is_of_a_key = False
        """Whether it failed for one of its keys, and may be of use for the others."""

    def halves(self) -> Sequence[_Request]:
        """The same keys in two requests."""
        middle = len(self.keys) // 2
        return [_Request(self.keys[:middle]), _Request(self.keys[middle:])]

    def get(self, client: LookupClient, timeout: timedelta) -> dict[Key, Outcome]:
        """One attempt; raises LookupFailed."""
        with self._lock:
            if self._is_ended:
                raise LookupFailed("its batch has ended", passes=False)
            self._client = client
            self._until = time.monotonic() + timeout.total_seconds()
        try:
            values = client.get(self.keys)
        except LookupFailed as error:
            if time.monotonic() >= self._until:
                seconds = timeout.total_seconds()
                raise _TimedOut(f"no reply within {seconds:g} seconds", passes=True) from error
            raise
        finally:
            with self._lock:
                self._client = None
        absent = Outcome("absent")
        return {k: Outcome("found", values[k]) if k in values else absent for k in self.keys}

    def end_overdue(self) -> None:
        """End the attempt if it takes too long."""
        with self._lock:
            if self._client is not None and time.monotonic() > self._until:
                self._client.abort()

    def end(self) -> None:
        """End the attempt, which is the last one."""
        with self._lock:
            self._is_ended = True
            if self._client is not None:
                self._client.abort()


class _TimedOut(LookupFailed):
    pass


class Pool:
    """Looks keys up by as many clients as there are requests at a time, and no more."""

    def __init__(self, lookup: Lookup, terms: Terms) -> None:
        self._lookup = lookup
        self._terms = terms
        self._types = [
            (field.name, to_arrow_type(field.dataType, timezone="UTC"))
            for field in lookup.schema.fields
        ]
        self._cache = Cache(terms.cache_for, terms.cache_rows)
        self._idle: LifoQueue[LookupClient] = LifoQueue()
        self._threads = ThreadPoolExecutor(terms.in_flight, thread_name_prefix="lookup")

    def outcomes(self, keys: Iterable[Key]) -> Iterator[dict[Key, Outcome]]:
        """The outcome of each key once, as they come; what is known already comes first.

        When as many requests in a row as there may be at a time have failed in a way that may pass,
        those that have not begun are given up: a service that hangs would hold each of them up.
        """
        known: dict[Key, Outcome] = {}
        unknown = []
        for key in keys:
            outcome = Outcome("absent") if None in key else self._cache.get(key)
            if outcome is None:
                unknown.append(key)
            else:
                known[key] = outcome
        if known:
            yield known
        pending: dict[Future[dict[Key, Outcome]], _Request] = {}
        for start in range(0, len(unknown), self._lookup.keys_at_once):
            request = _Request(unknown[start : start + self._lookup.keys_at_once])
            pending[self._threads.submit(self._run, request)] = request
        failed_in_a_row = 0
        try:
            while pending:
                done, _ = wait(pending, TICK_SECONDS, FIRST_COMPLETED)
                for request in pending.values():
                    request.end_overdue()
                for future in done:
                    request = pending.pop(future)
                    outcomes = future.result()
                    if request.is_of_a_key and len(request.keys) > 1:
                        for half in request.halves():
                            pending[self._threads.submit(self._run, half)] = half
                        continue
                    is_failure = any(o.passes for o in outcomes.values())
                    failed_in_a_row = failed_in_a_row + 1 if is_failure else 0
                    for key, outcome in outcomes.items():
                        if outcome.error is None:
                            self._cache.put(key, outcome)
                    yield outcomes
                if failed_in_a_row >= self._terms.in_flight:
                    given_up = [each for each in pending if each.cancel()]
                    reason = f"not looked up: {failed_in_a_row} requests before it failed"
                    for future in given_up:
                        keys_of = pending.pop(future).keys
                        yield dict.fromkeys(keys_of, Outcome("failed", error=reason, passes=True))
        finally:
            for future, request in pending.items():
                if not future.cancel():
                    # A batch that failed looks for overdue requests no more: one could hold its
                    # thread for as long as the service hangs.
                    request.end()

    def _run(self, request: _Request) -> dict[Key, Outcome]:
        """Look keys up, again where that may help."""
        for attempt in range(1, self._terms.attempts + 1):
            if attempt > 1:
                time.sleep(pause_before(attempt))
            client = self._client()
            try:
                outcomes = request.get(client, self._terms.timeout)
            except LookupFailed as failure:
                client.close()
                status: Status = "timed out" if isinstance(failure, _TimedOut) else "failed"
                failed = Outcome(status, error=str(failure), passes=failure.passes)
                request.is_of_a_key = failure.of_a_key
                if not failure.passes:
                    break
            except BaseException:
                client.close()
                raise
            else:
                self._idle.put(client)
                return self._fitting(outcomes)
        return dict.fromkeys(request.keys, failed)

    def _fitting(self, outcomes: dict[Key, Outcome]) -> dict[Key, Outcome]:
        """The outcomes, in which a key with a value that is none of its column's type failed."""
        for place, (name, kind) in enumerate(self._types):
            values = {k: o.values[place] for k, o in outcomes.items() if o.values is not None}
            if fits(values.values(), kind):
                continue
            failed = Outcome("failed", error=f"its value of '{name}' does not fit {kind}")
            outcomes |= {k: failed for k, value in values.items() if not fits([value], kind)}
        return outcomes

    def _client(self) -> LookupClient:
        try:
            return self._idle.get_nowait()
        except Empty:
            return self._lookup.open(self._terms.on, self._terms.timeout)


def fits(values: Iterable[object], kind: pa.DataType) -> bool:
    """Returns True if values can be those of a column."""
    try:
        pa.array([*values], kind)
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError):
        return False
    return True


_pools: dict[tuple[Lookup, Terms], Pool] = {}


def pool_of(lookup: Lookup, terms: Terms) -> Pool:
    """The pool of a service in this process, made when it is first needed."""
    if (lookup, terms) not in _pools:
        _pools[lookup, terms] = Pool(lookup, terms)
    return _pools[lookup, terms]
