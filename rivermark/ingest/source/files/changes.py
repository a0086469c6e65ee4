"""Files of a landing folder that are not as they were when they were read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, timedelta
from typing import Final

from rivermark.ingest.source.files.listing import LandedFile, LandedFiles
from rivermark.ingest.source.files.options import FileOptions
from rivermark.model.source_abilities import SplitAsRead
from rivermark.model.time import moment_of_micros

COARSE: Final = timedelta(seconds=1)
"""Stores and copies round modification times; without a digest less than this says nothing."""


def changed_files(
    landing_root: str, options: FileOptions, read: Iterable[SplitAsRead]
) -> dict[str, str]:
    """The names of files that were read and changed since, and how that shows, in words.

    A file whose size is the same is compared by its content where anything touched it since: its
    modification time is another one, or on a disk its inode was changed after it was read. Files
    that were read before digests were kept are known by their modification time alone.
    """
    landed = LandedFiles(landing_root, options)
    try:
        present = {file.name: file for file in landed.all().files}
    except OSError:
        return {}
    changed: dict[str, str] = {}
    for split in read:
        file = present.get(split.name)
        what = None if file is None else _change(landed, file, split)
        if what is not None:
            changed[split.name] = what
    return dict(sorted(changed.items()))


def _change(landed: LandedFiles, file: LandedFile, read: SplitAsRead) -> str | None:
    """The difference between the file and what was read, in words."""
    if file.size != read.size:
        return f"changed since, from {read.size} to {file.size} bytes"
    written = file.modified_at
    if read.digest is None:
        if abs(written - read.modified_at) <= COARSE:
            return None
        return f"written again since, {written.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    touched = moment_of_micros(file.ctime_ns // 1000)
    if written == read.modified_at and (read.at is None or touched <= read.at):
        return None
    try:
        same = landed.digest(file) == read.digest
    except OSError:
        return None
    return None if same else "changed since, its size is the same"
