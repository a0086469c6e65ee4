"""Places in the code of a user: where a declaration was made, and where an error was raised."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from sysconfig import get_path
from types import FrameType, TracebackType
from typing import Final

LIBRARY: Final = f"{Path(__file__).parents[1]}/"
STANDARD: Final = (f"{get_path('stdlib')}/", f"{get_path('platstdlib')}/")
INSTALLED: Final = ("/site-packages/", "/dist-packages/")
BRIDGES: Final = ("pyspark/", "py4j/", "pydantic/", "importlib")
"""Packages that call the code of users, or are called by it, and are none of it."""


@dataclass(frozen=True)
class Place:
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        path = Path(self.file)
        below = path.is_relative_to(Path.cwd())
        return f"{path.relative_to(Path.cwd()) if below else path}, line {self.line}"


def caller() -> Place | None:
    """The innermost line under way that is not the library's own; None where there is none."""
    return next(filter(None, map(_place, _callers(sys._getframe(1)))), None)


def raised_at(error: BaseException) -> Place | None:
    """The innermost line of a user's code that an error came through, its causes included.

    Of a package that is installed only where no other code is among them.
    """
    place = installed = None
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        for frame, line in _passed(cause.__traceback__):
            passed = _place(frame, line)
            if passed is not None and any(folder in passed.file for folder in INSTALLED):
                installed = passed
            else:
                place = passed or place
        cause = cause.__cause__
    return place or installed


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _passed(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _place(frame: FrameType, line: int | None = None) -> Place | None:
    """The place of a frame that is a user's."""
    file = frame.f_code.co_filename
    return Place(file, line or frame.f_lineno) if is_of_user(file) else None


def is_of_user(file: str) -> bool:
    """Returns True if a file belongs to a user, not to the library, to Python, or to Spark."""
    if file.startswith(("<", LIBRARY)):
        return False
    for folder in INSTALLED:
        if folder in file:
            return not file.rpartition(folder)[2].startswith(BRIDGES)
    return not file.startswith(STANDARD)
