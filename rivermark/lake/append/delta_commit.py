"""Appending to a table without going through its list of files: a data file and a log entry.

delta-rs goes through the whole list at each commit: 9 ms of CPU at 100 files, 34 at 100,000. An
append needs to know only the newest version, its columns and its protocol, and those stand in the
version's checksum. Rules: "Delta Transaction Protocol", sections Delta Log Entries, Actions, and
Requirements for Writers. What a table asks beyond `shape_of` is left to delta-rs.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from rivermark.lake.append.data_file import write_data_file
from rivermark.lake.append.table_features import Shape, shape_of
from rivermark.lake.append.version_checksum import (
    Actions,
    Sums,
    actions_of,
    put_checksum,
    sums_after,
    sums_of,
)
from rivermark.lake.commit_metadata import note
from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.log import CommitLog

ENGINE: Final = "rivermark"


@dataclass(frozen=True)
class Known:
    """A version, its sums, and its shape; None where they cannot be told, or are not served."""

    version: int
    sums: Sums | None
    shape: Shape | None

    @property
    def asked(self) -> tuple[Any, Any] | None:
        """What a shape follows from."""
        return None if self.sums is None else (self.sums["metadata"], self.sums["protocol"])


class Appender:
    """Appends to one table on this machine's disk. Call it under the table's commit lock."""

    def __init__(self, table_path: str) -> None:
        """Look at nothing yet."""
        self._path = table_path
        self._log = CommitLog(table_path)
        self._store, self._folder = filesystem(f"{table_path}/_delta_log")
        self._able = is_local(table_path)
        self._known: Known | None = None

    def append(self, rows: pa.Table, metadata: Mapping[str, Any]) -> bool:
        """Commit the rows as one file; False, and nothing done, where that is delta-rs's affair."""
        known = self._look() if self._able else None
        shape = known.shape if known is not None else None
        fitted = shape.fit(rows) if shape is not None else None
        if shape is None or fitted is None:
            return False
        files: Actions = []
        if fitted.num_rows:
            files = [write_data_file(Path(self._folder).parent, fitted, shape.skipped_by)]
        made = self._commit([_commit_info(fitted.num_rows, files, note(metadata)), *files], shape)
        if made is None:
            return False
        if made.sums is not None:
            put_checksum(self._store, self._folder, made.version, made.sums)
        if made.version % shape.checkpoint_each == 0:
            DeltaTable(self._path).create_checkpoint()
        return True

    def _look(self) -> Known | None:
        """The newest version, with what was committed by others since the last look."""
        known = self._known
        if known is None or not self._log.holds(known.version):
            # Not looked yet, or the log was cleaned past what is known here.
            newest = max(self._log.versions(), default=None)
            if newest is None:
                return None
            known = known_at(newest, sums_of(self._path, newest), known)
        while self._log.holds(known.version + 1):
            known = self._next(known, actions_of(self._store, self._folder, known.version + 1))
        self._known = known
        return known

    def _next(self, known: Known, commit: Actions) -> Known:
        sums = None if known.sums is None else sums_after(known.sums, commit)
        version = known.version + 1
        return known_at(version, sums or sums_of(self._path, version), known)

    def _commit(self, actions: Actions, shape: Shape) -> Known | None:
        """Make the log entry, at the next version that nobody took; None where it cannot be."""
        text = "".join(f"{json.dumps(each, separators=(',', ':'))}\n" for each in actions)
        draft = Path(self._folder) / f".{uuid.uuid4().hex}.tmp"
        draft.write_text(text)
        try:
            # The data file belongs to nothing where somebody changed the columns meanwhile.
            while (known := self._look()) is not None and known.shape is shape:
                try:
                    # A link, unlike a renaming, fails where the version is there.
                    os.link(draft, Path(self._folder) / f"{known.version + 1:020d}.json")
                except FileExistsError:
                    continue
                except OSError:
                    self._able = False  # A disk without links.
                    return None
                self._known = self._next(known, actions)
                return self._known
            return None
        finally:
            draft.unlink()


def known_at(version: int, sums: Sums | None, before: Known | None) -> Known:
    """A version by its sums; its shape is the one before's where the metadata is."""
    if sums is None:
        return Known(version, None, None)
    asked = (sums["metadata"], sums["protocol"])
    if before is not None and before.asked == asked:
        return Known(version, sums, before.shape)
    return Known(version, sums, shape_of(*asked))


def _commit_info(rows: int, files: Actions, told: str) -> dict[str, Any]:
    size = sum(each["add"]["size"] for each in files)
    return {
        "commitInfo": {
            "timestamp": time.time_ns() // 1_000_000,
            "operation": "WRITE",
            "operationParameters": {"mode": "Append", "partitionBy": "[]"},
            "isolationLevel": "Serializable",
            "isBlindAppend": True,
            "operationMetrics": {
                "numFiles": str(len(files)),
                "numOutputRows": str(rows),
                "numOutputBytes": str(size),
            },
            "userMetadata": told,
            "engineInfo": ENGINE,
        }
    }
