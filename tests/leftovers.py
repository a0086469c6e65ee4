"""Ends the processes that tests have left when their pytest is gone, however that ended.

What tests start may lead sessions of its own, and streams outlive the page: neither a signal to
pytest's group nor the end of its children reaches them. They inherit a variable, and a process
beside pytest, which reads a pipe that ends with it, finds them by that. Run as a program, this is
that process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final
from uuid import uuid4

import psutil

VARIABLE: Final = "TESTS_STARTED_BY"
GRACE_SECONDS: Final = 20.0
"""How long what is left has to end by itself: a JVM removes its files when its driver is gone."""
GIVE_UP_SECONDS: Final = 60.0
"""How long it is tried to end what is left: another account's cannot be."""
WATCHERS: Final[list[subprocess.Popen[bytes]]] = []
"""Keeps the pipe open until this process ends."""


def end_leftovers(grace: float = GRACE_SECONDS) -> None:
    """Let all that this process starts from now on end soon after it."""
    run = uuid4().hex
    others = {name: value for name, value in os.environ.items() if name != VARIABLE}
    watcher = subprocess.Popen(
        [sys.executable, __file__, run, str(grace)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=others,
    )
    WATCHERS.append(watcher)
    os.environ[VARIABLE] = run


def left_of(run: str) -> Iterator[psutil.Process]:
    """The living processes that were started by a run of tests."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(VARIABLE) == run:
                yield process


def main(run: str, grace: str) -> None:
    """Wait until the run is gone, then for the rest of it, and end what does not."""
    sys.stdin.buffer.read()
    deadline = time.monotonic() + float(grace)
    while (left := [*left_of(run)]) and time.monotonic() < deadline + GIVE_UP_SECONDS:
        if time.monotonic() > deadline:
            for process in left:
                with suppress(psutil.Error):
                    process.kill()
        time.sleep(0.2)


if __name__ == "__main__":
    main(*sys.argv[1:])
