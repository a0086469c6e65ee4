"""Waiting for facts, with a deadline and a reason: the only place in these tests that sleeps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

DEADLINE = 240.0
"""Seconds that a fact may take to come about on a busy machine."""


def until(fact: Callable[[], bool], reason: str, alive: Callable[[], bool] = lambda: True) -> None:
    """Return as soon as `fact` holds; fail when it is late, or when nobody lives to bring it."""
    deadline = time.monotonic() + DEADLINE
    while not fact():
        assert alive(), f"ended before: {reason}"
        assert time.monotonic() < deadline, f"not in {DEADLINE} seconds: {reason}"
        time.sleep(0.1)


class Running:
    """Something that runs in a thread until it is told to stop; its error is raised by `join`."""

    def __init__(self, body: Callable[[threading.Event], object]) -> None:
        self.stop = threading.Event()
        self.result: object = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(body,), daemon=True)
        self._thread.start()

    def _run(self, body: Callable[[threading.Event], object]) -> None:
        try:
            self.result = body(self.stop)
        except BaseException as error:
            self._error = error

    def alive(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    def join(self) -> object:
        """Wait for its end; gives its result or raises its error."""
        self._thread.join(DEADLINE)
        assert not self.alive(), "did not stop"
        if self._error is not None:
            raise self._error
        return self.result


@contextmanager
def running(body: Callable[[threading.Event], object]) -> Iterator[Running]:
    """Run the body in a thread for the length of a block, then stop it."""
    thread = Running(body)
    try:
        yield thread
    except AssertionError:
        # What ended the body says more than what was waited for.
        thread.stop.set()
        thread.join()
        raise
    finally:
        thread.stop.set()
    thread.join()
