"""Finding the damaged files of a batch that could not be read, so that the others still are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from py4j.protocol import Py4JJavaError
from pyarrow import fs
from pyspark.errors import AnalysisException, PySparkException

from rivermark.ingest.source.files.file_probe import one_line
from rivermark.ingest.source.files.stored_file import StoreFault
from rivermark.lake.filesystem import filesystem
from rivermark.model.source import Diagnose, Piece, PlannedSplit

PASSING: Final = (
    "Permission denied",
    "AccessControl",
    "Connection",
    "timed out",
    "Too many open",
    "OutOfMemory",
    "Input/output error",
    "cancelled",
    "No space left",
    # Workers that lack a package. A class that the JVM lacks may be the codec of one file.
    "ModuleNotFoundError",
    "ImportError",
)
"""Errors that say nothing about the file: the batch is tried again, and no file is quarantined."""

IN_PYTHON: Final = "An exception was thrown from the Python worker"
RAISED: Final = re.compile(r"(?:\w+\.)*(\w+): (.+)")
"""The last line of a traceback."""

# A failed job comes as an error of the bridge, unless PySpark has a class of its own for it.
SPARK_ERRORS: Final = (PySparkException, Py4JJavaError, OSError, ValueError)


def damaged_files(
    files: Sequence[PlannedSplit],
    pieces_of: Callable[[PlannedSplit], Sequence[Piece]],
    parse: Diagnose,
) -> dict[str, str]:
    """Read each file alone; returns the reason for each that can never be read.

    A file that can be read but not parsed, because a row of it makes an expression raise, has a
    reason of its own; a plan that Spark refuses is a fault of the declaration, not of a file.
    """
    damaged: dict[str, str] = {}
    for file in files:
        if vanished(file.path):
            damaged[file.name] = "file_vanished"
            continue
        try:
            fault = decoding_fault(pieces_of(file))
        except StoreFault:
            continue
        if fault is not None:
            damaged[file.name] = f"file_corrupt: {fault}"
            continue
        try:
            parse(file)
        except AnalysisException:
            continue
        except SPARK_ERRORS as error:
            blame(damaged, file, "file_unparsable", error)
    return damaged


def decoding_fault(pieces: Iterable[Piece]) -> str | None:
    """The fault of the file of these pieces, found by reading it; None where there is none.

    Raises:
        StoreFault: the store does not deliver the file now.
    """
    try:
        for piece in pieces:
            for _ in piece.read():
                pass
    except StoreFault:
        raise
    except Exception as error:
        # A decoder raises anything over damaged bytes.
        return one_line(f"{type(error).__name__}: {error}")
    return None


def blame(damaged: dict[str, str], file: PlannedSplit, what: str, error: BaseException) -> None:
    """Note the file's fault, unless the error may pass."""
    lines = message_lines(str(error))
    if not any(sign in line for sign in PASSING for line in lines):
        damaged[file.name] = f"{what}: {first_cause(lines)}"


def vanished(path: str) -> bool:
    """Returns True if the file is gone from a folder that is still there."""
    files, inside = filesystem(path)
    folder = inside.rsplit("/", 1)[0]
    file, parent = files.get_file_info([inside, folder])
    gone: bool = file.type == fs.FileType.NotFound and parent.type == fs.FileType.Directory
    return gone


def message_lines(message: str) -> list[str]:
    """The lines of an error message, without its stack."""
    lines = [line.strip() for line in message.splitlines()]
    return [line for line in lines if line and not line.startswith(("at ", "...", "An error occ"))]


def first_cause(message: Sequence[str]) -> str:
    """The line that names the cause, short enough for a table."""
    if message and IN_PYTHON in message[0]:
        raised = [match for line in message[1:] if (match := RAISED.fullmatch(line))]
        if raised:
            return f"{raised[-1][1]}: {raised[-1][2]}"[:200]
    causes = [line for line in message if line.startswith("Caused by")]
    return (causes[-1:] or [*message, "unreadable"])[0].removeprefix("Caused by: ")[:200]
