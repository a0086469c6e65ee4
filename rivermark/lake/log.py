"""A table's history read from its own log: versions, times, who committed what. Starts no JVM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from math import inf
from typing import Any, Final

from pyarrow import fs

from rivermark.lake.filesystem import filesystem
from rivermark.lake.integrity.log_entry import Actions, damaged, entry_path, read_entry

REMEMBERED: Final = "remembered"
"""Key of a commit's metadata: the newest batch of each stream, as of that commit."""


@dataclass(frozen=True)
class Commit:
    """One version of a table: when (UTC), by which operation, with which metadata of ours.

    `metadata` is the JSON that the platform's writers put into a commit (stream, generation, batch,
    run, watermark); empty for those of other writers. `rows` is what the commit added, where it
    says so, without the rows that it only copied because their file held replaced ones.
    """

    version: int
    at: datetime
    operation: str
    metadata: dict[str, Any] = field(default_factory=dict)
    rows: int | None = None


class CommitLog:
    """The JSON commits of one table, found by name, never by listing what was read before."""

    def __init__(self, table_path: str) -> None:
        """Open the log below a table's folder; the table need not exist yet."""
        self._fs, self._folder = filesystem(f"{table_path}/_delta_log")

    def versions(self) -> list[int]:
        """Versions whose commit is still in the log, ascending."""
        # Not those of compacted commits, nor of table checkpoints in JSON.
        return sorted(int(n[:20]) for n in self._names() if n[20:] == ".json")

    def checkpoints(self) -> list[int]:
        """Versions of which the log holds a table checkpoint, ascending."""
        return sorted({int(n[:20]) for n in self._names() if n[20:].startswith(".checkpoint")})

    def _names(self) -> list[str]:
        """Files of the log that belong to a version."""
        selector = fs.FileSelector(self._folder, allow_not_found=True)
        names = (f.base_name for f in self._fs.get_file_info(selector))
        return [name for name in names if name[:20].isdigit()]

    def holds(self, version: int) -> bool:
        """Returns True if that commit is in the log, without reading it."""
        info: fs.FileInfo = self._fs.get_file_info(entry_path(self._folder, version))
        return bool(info.type == fs.FileType.File)

    def read(self, version: int) -> Commit | None:
        """That commit, or None when the log does not hold it."""
        try:
            actions = self._actions(version)
        except FileNotFoundError:
            return None
        info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
        return commit_of(version, info)

    def backwards(self) -> Iterator[Commit]:
        """The commits from the newest to the oldest that the log holds.

        Raises TableDamaged at a version that is missing between two others, as at every entry that
        is empty or cut.
        """
        newer: int | None = None
        for listed in reversed(self.versions()):
            # A listing is no snapshot: what it lacks between two others may be there.
            for version in range(newer - 1 if newer is not None else listed, listed - 1, -1):
                commit = self.read(version)
                if commit is not None:
                    yield commit
                elif version != listed:
                    raise damaged(entry_path(self._folder, version), f"is missing, {newer} is not")
            newer = listed

    def history(self) -> Iterator[Commit]:
        """The commits of the log, newest first; then those that maintenance recorded.

        Of what is no longer in the log these are the newest batch of each stream, so that one
        which stood still knows its place (rivermark/lake/maintenance/vacuum.py).
        """
        first, kept = 0, None
        for commit in self.backwards():
            first = commit.version
            kept = commit.metadata.get(REMEMBERED) if kept is None else kept
            yield commit
        if kept is not None and first > 0:
            for each in kept["batches"]:
                if each["version"] < first:
                    at = datetime.fromisoformat(each["at"])
                    yield Commit(each["version"], at, "WRITE", each["metadata"], each["rows"])

    def knows_all(self) -> bool:
        """Returns True if a batch that is not in `history` was never written."""
        if self.complete():
            return True
        markers = (c.metadata[REMEMBERED] for c in self.backwards() if REMEMBERED in c.metadata)
        newest = next(markers, None)
        return newest is not None and bool(newest["all"])

    def latest(self) -> Commit | None:
        """The newest commit, or None for a table that does not exist."""
        return next(self.backwards(), None)

    def complete(self) -> bool:
        """True if the log still begins at version 0, so that what it does not show never was."""
        versions = self.versions()
        return not versions or versions[0] == 0

    def first_readable(self) -> int:
        """The first version that the log can give: its first, or that of its first checkpoint."""
        return 0 if self.complete() else min(self.checkpoints(), default=0)

    def only_appends(self) -> bool:
        """True if its commits, read from version 0 on, give the rows that the table holds now.

        Reads every commit: ask it before a first start only.
        """
        if not self.complete():
            return False
        return not any("remove" in a for v in self.versions() for a in self._actions(v))

    def adds_rows(self, first: int, before: int) -> bool:
        """True if any commit of [first, before) brought rows, and did not only copy some."""
        versions = (v for v in self.versions() if first <= v < before)
        actions = (each for v in versions for a in self._actions(v) for each in a.values())
        return any(each.get("dataChange") is True for each in actions)

    def bytes_added(self, first: int) -> int:
        """Bytes of the files that commits brought from that version on, as rows and not copies."""
        return sum(action["add"]["size"] for action in self.files_added(first))

    def files_added(self, first: int, before: float = inf) -> Iterator[dict[str, Any]]:
        """Actions of [first, before) that add files, as rows and not copies."""
        versions = (version for version in self.versions() if first <= version < before)
        actions = (action for version in versions for action in self._actions(version))
        return (each for each in actions if "add" in each and each["add"]["dataChange"])

    def following(self, first: int) -> Iterator[Actions]:
        """The actions of each commit from a version on, asked for by name: nothing is listed."""
        for version in count(first):
            try:
                yield self._actions(version)
            except FileNotFoundError:
                return

    def takes_files(self, first: int) -> bool:
        """Returns True if any commit from that version on took a file out of the table."""
        versions = (version for version in self.versions() if version >= first)
        return any("remove" in a for v in versions for a in self._actions(v))

    def _actions(self, version: int) -> Actions:
        return read_entry(self._fs, self._folder, version)


def commit_of(version: int, info: dict[str, Any]) -> Commit:
    """Read a commitInfo of Delta (JVM) or of delta-rs."""
    metadata: dict[str, Any] = {}
    try:
        parsed = json.loads(info.get("userMetadata") or "{}")
        metadata = parsed if isinstance(parsed, dict) else {}
    except ValueError:
        pass
    metrics = info.get("operationMetrics") or {}
    rows = metrics.get("numOutputRows", metrics.get("num_added_rows"))
    copied = metrics.get("numCopiedRows", metrics.get("num_copied_rows")) or 0
    return Commit(
        version=version,
        at=datetime.fromtimestamp(int(info.get("timestamp", 0)) / 1000, UTC),
        operation=str(info.get("operation", "")),
        metadata=metadata,
        rows=int(rows) - int(copied) if rows is not None else None,
    )
