"""The exit codes of the console, which docs/operations/console.md explains."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The outcome of a command, as its exit code."""

    DONE = 0
    FAULT = 1
    """A check is broken, something is damaged or differs, or the command could not do its work."""
    WRONG_USE = 2
    """The command line makes no sense: nothing was done."""
    WARNED = 3
    """Checks warn, and none is broken."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C or SIGTERM before the work was done."""
