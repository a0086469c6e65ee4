"""The standby of the supervisor: waits beside it, and takes its place when it is killed.

Its standard input is a pipe whose other end the supervisor holds. The supervisor ends in order by
a word on it; when the pipe closes without one, the supervisor is dead.
"""

from __future__ import annotations

import os
import signal
import sys

from rivermark.runtime.supervision.live_process import on_interrupt


def main() -> None:
    """Wait for the supervisor's end; become the supervisor unless it said so."""
    on_interrupt(signal.SIG_DFL)
    if sys.stdin.buffer.read():
        return
    print(  # noqa: T201
        f"rivermark: the process that supervises the page was killed; process {os.getpid()} takes "
        f"over. End it with: kill {os.getpid()}",
        flush=True,
    )
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.execv(sys.executable, [sys.executable, "-m", "rivermark.dagster.ui", *sys.argv[1:]])  # noqa: S606


if __name__ == "__main__":
    main()
