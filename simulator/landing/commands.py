"""Parts shared by the commands that land files: the folder, how to stop, progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rivermark.cli.console import err, moment, number, plain
from rivermark.settings import Settings
from simulator.landing.pace import Paced, Progress

LINE_SECONDS: Final = 10.0
"""How often a line goes into a pipe; a terminal has one line that changes."""


def manifest_path(settings: Settings, name: str) -> Path:
    """The record of a landing run: beside the landing folder, never in it."""
    return settings.home / "manifests" / f"{name}.jsonl"


@contextmanager
def stop_after(seconds: float | None, stop: threading.Event) -> Iterator[None]:
    """Set `stop` once so many seconds have passed, unless the block ends before."""
    timer = threading.Timer(seconds or 0, stop.set)
    timer.daemon = True
    if seconds is not None:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def landing_progress(what: str) -> Iterator[Callable[[Progress], None]]:
    """A listener for a paced landing that shows its progress."""
    console = err()
    printed = time.monotonic()
    with console.status(what) as status:

        def show(progress: Progress) -> None:
            nonlocal printed
            text = (
                f"{what}: {number(progress.rows)} rows in {number(progress.files)} files, "
                f"event time {moment(progress.due)}"
            )
            if progress.behind.total_seconds() > 1:
                text += f", {progress.behind.total_seconds():,.0f} s behind"
            if console.is_terminal:
                status.update(plain(text))
            elif time.monotonic() - printed >= LINE_SECONDS:
                printed = time.monotonic()
                console.print(plain(text))

        yield show


def landed_sentence(paced: Paced) -> str:
    """The result of a paced landing, in a sentence."""
    ended = "stopped" if paced.stopped else "done"
    return f"{ended}: {number(paced.rows)} rows in {number(paced.files)} files"
