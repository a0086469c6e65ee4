"""Finding the damaged files of a batch that could not be read, so that the others still are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyarrow import fs
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rivermark.lake.files import filesystem
from rivermark.sources.files import FileSource
from rivermark.sources.reading import Arrived, read_files

PASSING: Final = ("Permission denied", "AccessControl", "Connection", "timed out", "Too many open")
"""Errors that say nothing about the file: the batch is tried again, the file is not set aside."""


def damaged_files(
    spark: SparkSession, files: Sequence[Arrived], source: FileSource
) -> dict[str, str]:
    """Read each file alone; gives the reason for those that cannot be read and never will be."""
    found: dict[str, str] = {}
    for file in files:
        if vanished(file.path):
            found[file.name] = "file_vanished"
            continue
        try:
            read_files(spark, [file], source).write.format("noop").mode("overwrite").save()
        except (PySparkException, OSError, ValueError) as error:
            message = str(error)
            if not any(sign in message for sign in PASSING):
                found[file.name] = f"file_corrupt: {first_cause(message)}"
    return found


def vanished(path: str) -> bool:
    """Whether the file is gone from a folder that is still there."""
    files, inside = filesystem(path)
    folder = inside.rsplit("/", 1)[0]
    file, parent = files.get_file_info([inside, folder])
    gone: bool = file.type == fs.FileType.NotFound and parent.type == fs.FileType.Directory
    return gone


def first_cause(message: str) -> str:
    """The line of an engine's message that names the cause, short enough for a table."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    causes = [line for line in lines if "Caused by" in line or "Exception" in line]
    return (causes or lines or ["unreadable"])[-1][:200]
