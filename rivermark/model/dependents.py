"""Dependents of a faulty declaration: left out, since their faults follow from it.

While errors are collected, a faulty declaration is kept so that the import of a deployment goes on.
What is made of it, or fails by it, is told from the code that ran: by the names on its line.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Mapping
from types import FrameType, ModuleType
from typing import Any, Final

from rivermark.model.place import LIBRARY

FAULTY: Final = "_faulty"
"""The attribute of a declaration that is not right, or was made of one."""
MOST_FRAMES: Final = 60


def is_faulty(value: object) -> bool:
    """Returns True if a value is such a declaration, or a collection with one."""
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(is_faulty, value))
    if isinstance(value, Mapping):
        return any(map(is_faulty, value.values()))
    return not isinstance(value, type) and getattr(value, FAULTY, False) is True


def made_of_faulty() -> bool:
    """True if the code that runs now uses a faulty declaration, in a line on the way here."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(MOST_FRAMES):
        if frame is None:
            return False
        if not _is_library(frame) and _line_uses_faulty(frame, frame.f_lasti):
            return True
        frame = frame.f_back
    return False


def fails_by_faulty(error: BaseException | None) -> bool:
    """Returns True if an error came through code that used a faulty declaration."""
    while error is not None:
        trace = error.__traceback__
        while trace is not None:
            frame = trace.tb_frame
            if _is_library(frame):
                if any(map(is_faulty, frame.f_locals.values())):
                    return True
            elif _line_uses_faulty(frame, trace.tb_lasti):
                return True
            trace = trace.tb_next
        error = error.__cause__
    return False


def _is_library(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(LIBRARY)


def _line_uses_faulty(frame: FrameType, at: int) -> bool:
    return any(is_faulty(value) for value in _used(frame, at))


def _used(frame: FrameType, at: int) -> Iterator[Any]:
    """The values of the names in the expression that runs at an instruction."""
    steps = [*dis.get_instructions(frame.f_code)]
    now = next((each for each in steps if each.offset == at), None)
    if now is None or now.positions is None or now.positions.lineno is None:
        return
    first, last = now.positions.lineno, now.positions.end_lineno or now.positions.lineno
    names = {
        each.argval
        for each in steps
        if each.opname.startswith("LOAD_")
        and isinstance(each.argval, str)
        and each.positions is not None
        and first <= (each.positions.lineno or 0) <= last
    }
    for name in names:
        value = frame.f_locals.get(name, frame.f_globals.get(name))
        if isinstance(value, ModuleType):
            yield from (vars(value).get(each) for each in names)
        else:
            yield value
