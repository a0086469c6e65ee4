"""Files of a landing folder that are not as they were when they were read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import pyarrow.compute as pc

from rivermark.ingest.source.files.listing import EPOCH, LandedFile, LandedFiles
from rivermark.ingest.source.files.options import FileOptions
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.delta import read_rows
from rivermark.lake.snapshot import open_table
from rivermark.model.check import CheckResult
from rivermark.model.stream import Ingest
from rivermark.settings import Settings

UNCHANGED: Final = "files_are_as_they_were_read"
EXAMPLES: Final = 10
COLUMNS: Final = ("file", "size", "modified_at", "at", "digest")
MICROSECOND: Final = timedelta(microseconds=1)
COARSE: Final = timedelta(seconds=1)
"""Stores and copies round modification times; without a digest less than this says nothing."""


@dataclass(frozen=True)
class _Read:
    """What the ledger says of a file: as it was, and when its outcome was written (UTC)."""

    size: int
    modified_at: datetime
    at: datetime | None
    digest: str | None


def changed_files(settings: Settings, ingest: Ingest) -> dict[str, str]:
    """The names of files that were read and changed since, and how that shows, in words.

    A file whose size is the same is compared by its content where anything touched it since: its
    modification time is another one, or on a disk its inode was changed after it was read. Files
    that were read before digests were kept are known by their modification time alone. Those that
    are gone are left out.
    """
    lake, source = settings.lake(), ingest.source
    if not isinstance(source, FileOptions) or not lake.exists(INGEST_FILES):
        return {}
    landed = LandedFiles(settings.landing_root, source)
    try:
        present = {file.name: file for file in landed.all().files}
    except OSError:
        return {}
    dataset = open_table(lake, INGEST_FILES)
    columns = [name for name in COLUMNS if name in dataset.schema.names]
    rows = read_rows(dataset, columns=columns, filter=pc.field("stream") == ingest.name)
    changed: dict[str, str] = {}
    for row in rows.to_pylist():
        file = present.get(row["file"])
        if file is None or row["size"] is None or row["modified_at"] is None:
            continue
        read = _Read(row["size"], row["modified_at"], row["at"], row.get("digest"))
        what = _change(landed, file, read)
        if what is not None:
            changed[file.name] = what
    return dict(sorted(changed.items()))


def files_unchanged(settings: Settings, ingest: Ingest) -> CheckResult:
    """Whether every file that was read has the content that was read."""
    changed = [*changed_files(settings, ingest).items()]
    again = f"; to read one again: rivermark retake {ingest.name} FILE" if changed else ""
    return CheckResult(
        name=UNCHANGED,
        severity="warning",
        passed=not changed,
        observed=f"{len(changed):,} files changed after they were read{again}",
        bound="none may",
        numbers={"files_changed": len(changed)},
        examples=tuple({"file": name, "change": what} for name, what in changed[:EXAMPLES]),
    )


def _change(landed: LandedFiles, file: LandedFile, read: _Read) -> str | None:
    """How the file differs from what was read, in words."""
    if file.size != read.size:
        return f"changed since, from {read.size} to {file.size} bytes"
    written = file.modified_at
    if read.digest is None:
        if abs(written - read.modified_at) <= COARSE:
            return None
        return f"written again since, {written.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    touched = EPOCH + (file.ctime_ns // 1000) * MICROSECOND
    if written == read.modified_at and (read.at is None or touched <= read.at):
        return None
    try:
        same = landed.digest(file) == read.digest
    except OSError:
        return None
    return None if same else "changed since, its size is the same"
