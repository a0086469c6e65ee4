"""What is run when a person has to look: a command of the deployment's own."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Sequence
from typing import Final

LOG = logging.getLogger("rivermark")
SECONDS: Final = 30
"""How long the command may take: longer would hold up what restarts streams."""


def notify(command: Sequence[str], incident: str, message: str) -> bool:
    """Run the command with the incident and the message as its last two arguments.

    They are never part of a shell's text, whatever they hold. Without a command nothing is done. A
    command that fails is logged and stops nothing; returns whether it succeeded.
    """
    if not command:
        return False
    try:
        # No NUL can be passed on; what follows a line end is kept for the log of the sensor.
        words = [*command, *(text.replace("\0", " ") for text in (incident, message))]
        done = subprocess.run(
            words, check=False, timeout=SECONDS, stdin=subprocess.DEVNULL, capture_output=True
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        LOG.warning("the command that notifies failed: %s", error)
        return False
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[-300:]
        LOG.warning("the command that notifies ended with %d: %s", done.returncode, said)
    return done.returncode == 0
