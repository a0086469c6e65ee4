"""Runs something in a thread beside a test, and raises its error in the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rivermark.testing.waiting import TIMEOUT_SECONDS


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
        self._thread.join(TIMEOUT_SECONDS)
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
