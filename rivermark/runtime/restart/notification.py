"""Sends what the outbox holds, by a command of the deployment's own, in a process of its own.

    python -m rivermark.runtime.restart.notification STATE_ROOT COMMAND [ARGUMENT ...]

No tick of a sensor waits for that command: who writes a notice starts the process, where none runs,
and goes on. It ends when nothing is to be sent soon.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from rivermark.runtime.restart.outbox import Outbox
from rivermark.runtime.supervision import state_file

LOG = logging.getLogger("rivermark")
MODULE: Final = "rivermark.runtime.restart.notification"
SECONDS: Final = 30.0
"""How long the command may take before it is killed, with what it has started."""
SOON: Final = timedelta(seconds=10)
"""A notice that is due later is left to the next process."""
STARTED: Final[list[subprocess.Popen[bytes]]] = []
"""The process that this one has started: it may not hold the lock yet."""
STATUS: Final = "RIVERMARK_NOTICE"
"""The variable in which the command finds whether the cause is `open` or `over`."""


def ensure_sent(state_root: str | Path, command: Sequence[str]) -> bool:
    """Have what is due sent by a process of its own; returns whether one was started."""
    outbox = Outbox(state_root)
    STARTED[:] = [process for process in STARTED if process.poll() is None]
    if STARTED or not command or not outbox.due() or _is_sending(outbox):
        return False
    STARTED.append(
        subprocess.Popen(
            [sys.executable, "-m", MODULE, str(state_root), *command],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
        )
    )
    return True


def send_due(outbox: Outbox, command: Sequence[str], seconds: float = SECONDS) -> None:
    """Send what is due, one after the other, until nothing is due soon.

    Without effect where another process sends.
    """
    descriptor = state_file.lock(_lock_of(outbox), 0.0)
    if descriptor is None:
        return
    try:
        while True:
            for notice in outbox.due():
                over = notice.sent and notice.over_at is not None
                error = run(command, notice.cause, notice.text, over=over, seconds=seconds)
                if error is not None:
                    LOG.warning("the command that notifies failed: %s", error)
                outbox.tried(notice, error)
            waiting = [notice.due for notice in outbox.notices() if notice.waits]
            if not waiting or min(waiting) - datetime.now(UTC) > SOON:
                return
            time.sleep(0.2)
    finally:
        os.close(descriptor)


def run(
    command: Sequence[str], incident: str, message: str, *, over: bool, seconds: float = SECONDS
) -> str | None:
    """Run the command with incident and message as its last arguments; returns why it failed.

    They are never part of a shell's text, whatever they hold.
    """
    # No NUL can be passed on.
    words = [*command, *(text.replace("\0", " ") for text in (incident, message))]
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, STATUS: "over" if over else "open"},
            )
        except (OSError, ValueError) as error:
            return str(error)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            # What it has started holds up nothing either.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"{words[0]} was not done within {seconds:.0f} s, and was killed"
        if code == 0:
            return None
        output.seek(max(output.seek(0, os.SEEK_END) - 300, 0))
        return f"{words[0]} ended with {code}: {output.read().decode(errors='replace').strip()}"


def _is_sending(outbox: Outbox) -> bool:
    descriptor = state_file.lock(_lock_of(outbox), 0.0)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is None


def _lock_of(outbox: Outbox) -> Path:
    return outbox.folder / ".sending"


if __name__ == "__main__":
    send_due(Outbox(sys.argv[1]), sys.argv[2:])
