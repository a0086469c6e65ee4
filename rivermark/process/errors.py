"""Errors in a process, said so that its author finds the event and the line."""

from __future__ import annotations

import linecache
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import msgspec

from rivermark.model.errors import RivermarkError
from rivermark.process.event_json import to_json

_ENGINE: Final = str(Path(__file__).parent)
_LONGEST_EVENT: Final = 400


class Misuse(RivermarkError):
    """A handler asked for something that its process does not declare or that cannot be done."""


class StateTooLarge(RivermarkError):
    """The state of a bucket or key passed its limit; the message names the largest keys."""


class StateUnreadable(RivermarkError):
    """Stored state does not fit the process that reads it; the message says which part."""


class ProcessError(RivermarkError):
    """A handler raised. Names process, key, event and line; the cause is chained.

    The batch as a whole is not applied: run again with the same input it does the same.
    """

    def __init__(self, process: str, key: Any, event: Any, at: int, cause: BaseException) -> None:
        self.process = process
        self.key = key
        self.event = event
        self.at = at
        self.line = line_of(cause.__traceback__)
        what = f"event {shorten(event)}" if event is not None else f"timer at {at}"
        super().__init__(
            f"process '{process}' failed on key {key!r}, {what}: "
            f"{type(cause).__name__}: {cause} ({self.line})"
        )


class DeadLetter(msgspec.Struct, frozen=True):
    """An event (or timer) whose handler raised, with the error; its effects were rolled back.

    `input` is None for a timer, and `event` is then None too; `timer` says of which kind of time it
    was. `at` is the event's time, or the timer's (milliseconds since the epoch, UTC). Feeding
    `event` to `input` again replays it, or setting the timer again.
    """

    process: str
    input: str | None
    key: Any
    at: int
    event: Any
    error: str
    message: str
    line: str
    timer: str | None = None

    @classmethod
    def of(
        cls,
        failure: ProcessError,
        cause: BaseException,
        source: str | None,
        timer: str | None = None,
    ) -> DeadLetter:
        """The dead letter for an event of input `source`, or for a timer, whose handling failed."""
        return cls(
            process=failure.process,
            input=source,
            key=failure.key,
            at=failure.at,
            event=failure.event,
            error=type(cause).__name__,
            message=str(cause),
            line=failure.line,
            timer=timer,
        )

    def payload(self) -> str:
        """The event as JSON, for a table of dead letters; NaN and the infinities are texts."""
        return to_json(self.event)


def line_of(trace: TracebackType | None) -> str:
    """Innermost line outside the engine: 'file:line in function: source'."""
    innermost = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if innermost is None or not code.co_filename.startswith(_ENGINE):
            innermost = (code, trace.tb_lineno)
        trace = trace.tb_next
    if innermost is None:
        return "no line"
    code, number = innermost
    source = linecache.getline(code.co_filename, number).strip()
    return f"{Path(code.co_filename).name}:{number} in {code.co_name}: {source}"


def shorten(event: Any) -> str:
    """An event's text, cut where it would drown the message."""
    text = repr(event)
    return text if len(text) <= _LONGEST_EVENT else text[:_LONGEST_EVENT] + "…"
