"""Finding the damaged files of a batch that could not be read, so that the others still are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from py4j.protocol import Py4JJavaError
from pyarrow import fs
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from rivermark.ingest.source.spark_reader import Arrived, read_files
from rivermark.lake.filesystem import filesystem
from rivermark.model.file_source import FileSource

PASSING: Final = (
    "Permission denied",
    "AccessControl",
    "Connection",
    "timed out",
    "Too many open",
    "OutOfMemory",
    "Input/output error",
    "cancelled",
)
"""Errors that say nothing about the file: the batch is tried again, the file is not set aside."""

# A failed job comes as an error of the bridge, unless PySpark has a class of its own for it.
ENGINE: Final = (PySparkException, Py4JJavaError, OSError, ValueError)


def damaged_files(
    spark: SparkSession,
    files: Sequence[Arrived],
    source: FileSource,
    parse: Callable[[Arrived], object],
) -> dict[str, str]:
    """Read each file alone; gives the reason for those that cannot be read and never will be.

    A file that can be read but not parsed, because a row of it makes an expression raise, is told
    apart; a plan that Spark refuses is a fault of the declaration, and no file is blamed for it.
    """
    found: dict[str, str] = {}
    for file in files:
        if vanished(file.path):
            found[file.name] = "file_vanished"
            continue
        try:
            read_files(spark, [file], source).write.format("noop").mode("overwrite").save()
        except ENGINE as error:
            blame(found, file, "file_corrupt", error)
            continue
        try:
            parse(file)
        except AnalysisException:
            continue
        except ENGINE as error:
            blame(found, file, "file_unparsable", error)
    return found


def blame(found: dict[str, str], file: Arrived, what: str, error: BaseException) -> None:
    """Note the file's fault, unless the error may pass."""
    told = lines_of(str(error))
    if not any(sign in line for sign in PASSING for line in told):
        found[file.name] = f"{what}: {first_cause(told)}"


def vanished(path: str) -> bool:
    """Whether the file is gone from a folder that is still there."""
    files, inside = filesystem(path)
    folder = inside.rsplit("/", 1)[0]
    file, parent = files.get_file_info([inside, folder])
    gone: bool = file.type == fs.FileType.NotFound and parent.type == fs.FileType.Directory
    return gone


def lines_of(message: str) -> list[str]:
    """The lines of an engine's message, without its stack."""
    lines = [line.strip() for line in message.splitlines()]
    return [line for line in lines if line and not line.startswith(("at ", "...", "An error occ"))]


def first_cause(told: Sequence[str]) -> str:
    """The line that names the cause, short enough for a table."""
    causes = [line for line in told if line.startswith("Caused by")]
    return (causes[-1:] or [*told, "unreadable"])[0].removeprefix("Caused by: ")[:200]
