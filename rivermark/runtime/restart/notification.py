"""Sends what the outbox holds, by commands, in a process of its own.

    python -m rivermark.runtime.restart.notification STATE_ROOT COMMANDS

`COMMANDS` is a JSON list of commands, each a list of words. No tick of a sensor waits for them: who
writes a notice starts the process, where none runs, and goes on. It ends when nothing is to be sent
soon.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from rivermark.connect.notices import VARIABLE
from rivermark.runtime.restart.outbox import Outbox
from rivermark.runtime.supervision import state_file

LOG = logging.getLogger("rivermark")
MODULE: Final = "rivermark.runtime.restart.notification"
DELIVERY: Final = "rivermark.connect.notices"
SECONDS: Final = 30.0
"""How long the command may take before it is killed, with what it has started."""
SOON: Final = timedelta(seconds=10)
"""A notice that is due later is left to the next process."""
STARTED: Final[list[subprocess.Popen[bytes]]] = []
"""The process that this one has started: it may not hold the lock yet."""
STATUS: Final = "RIVERMARK_NOTICE"
"""The variable in which the command finds whether the cause is `open` or `over`."""


@dataclass(frozen=True)
class Receivers:
    """The receivers of notices: a command of the deployment's own, and addresses."""

    command: Sequence[str] = ()
    addresses: Sequence[str] = ()

    def commands(self) -> list[list[str]]:
        """The commands by which each gets a notice; those of addresses find them by `variables`."""
        count = range(len(self.addresses))
        own = [[*self.command]] if self.command else []
        return [*own, *([sys.executable, "-m", DELIVERY, str(number)] for number in count)]

    def variables(self) -> dict[str, str]:
        """The environment with the addresses, which hold secrets."""
        return {**os.environ, VARIABLE: json.dumps([*self.addresses])}


def ensure_sent(state_root: str | Path, receivers: Receivers) -> bool:
    """Have what is due sent by a process of its own; returns whether one was started."""
    outbox, commands = Outbox(state_root), receivers.commands()
    STARTED[:] = [process for process in STARTED if process.poll() is None]
    if STARTED or not commands or not outbox.due() or _is_sending(outbox):
        return False
    STARTED.append(
        subprocess.Popen(
            [sys.executable, "-m", MODULE, str(state_root), json.dumps(commands)],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            env=receivers.variables(),
        )
    )
    return True


def send_due(outbox: Outbox, commands: Sequence[Sequence[str]], seconds: float = SECONDS) -> None:
    """Send what is due, one after the other, until nothing is due soon.

    A receiver that took a notice does not get it again where another one did not. Without effect
    where another process sends.
    """
    descriptor = state_file.lock(_lock_of(outbox), 0.0)
    if descriptor is None:
        return
    try:
        while True:
            for notice in outbox.due():
                over = notice.sent and notice.over_at is not None
                taken, errors = set(notice.taken), []
                for command in commands:
                    receiver = hashlib.sha256(json.dumps([*command]).encode()).hexdigest()[:16]
                    if receiver in taken:
                        continue
                    error = run(command, notice.cause, notice.text, over=over, seconds=seconds)
                    if error is None:
                        taken.add(receiver)
                    else:
                        LOG.warning("a notice was not sent: %s", error)
                        errors.append(error)
                outbox.tried(notice, "; ".join(errors) or None, taken=taken)
            waiting = [notice.due for notice in outbox.notices() if notice.waits]
            if not waiting or min(waiting) - datetime.now(UTC) > SOON:
                return
            time.sleep(0.2)
    finally:
        os.close(descriptor)


def run(
    command: Sequence[str],
    incident: str,
    message: str,
    *,
    over: bool,
    seconds: float = SECONDS,
    variables: Mapping[str, str] = os.environ,
) -> str | None:
    """Run the command with incident and message as its last arguments; returns why it failed.

    They are never part of a shell's text, whatever they hold. `variables` are its environment.
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
                env={**variables, STATUS: "over" if over else "open"},
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
    send_due(Outbox(sys.argv[1]), json.loads(sys.argv[2]))
