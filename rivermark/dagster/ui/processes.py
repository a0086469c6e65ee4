"""Processes that outlive the one that started them, named by their number and start."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psutil

from rivermark.runtime.supervision.live_process import live_process, start_of


@dataclass(frozen=True)
class Living:
    """A process by its number and its start (`began`: seconds since 1970)."""

    pid: int
    began: float
    start: str | None = None

    @classmethod
    def of(cls, pid: int) -> Living:
        """The process that has the number now; one that ended at once counts as not living."""
        try:
            return cls(pid, psutil.Process(pid).create_time(), start_of(pid))
        except psutil.NoSuchProcess:
            return cls(pid, 0.0)

    def runs(self) -> bool:
        """True if it is still there."""
        return live_process(self.pid, self.began, self.start) is not None

    def end(self, signal_number: int) -> None:
        """Send it a signal, if it is still there."""
        if self.runs():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal_number)


def start(
    module: str,
    words: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    stdin: int | None = None,
) -> subprocess.Popen[bytes]:
    """Start a Python module in a session of its own: the terminal's interrupt does not reach it."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *words],
        start_new_session=True,
        env=environment,
        stdin=stdin,
    )
