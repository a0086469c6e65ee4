"""A Delta table as a source: its rows as they are, then the rows of each commit."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.source import (
    SourceReader,
)
from rivermark.model.source_abilities import NeededVersion, TableSource

if TYPE_CHECKING:
    pass


@declared("source", lambda values: values.get("table"))
@dataclass(frozen=True, kw_only=True)
class DeltaSource(TableSource):
    """The rows of a Delta table at any path or URI, also outside the lake.

    First the table as it is when it is first read (as `snapshot-<version>`), then the rows of each
    commit (as `version-<version>`). `from_version` begins with that commit instead.

    `changes="appends"` reads rows that commits add; a commit that updates or deletes rows ends the
    run with an error. `changes="feed"` reads the change data feed: each row has `_change_type`
    (`insert`, `update_preimage`, `update_postimage`, `delete`), `_commit_version` and
    `_commit_timestamp`, which fields take by their `names`. Commits that only rewrite files
    (compaction) bring no rows in either. Versions must be kept until they are read.

    Raises:
        DeclarationError: `table` is empty, or `from_version` is below 0.
    """

    table: str
    changes: Literal["appends", "feed"] = "appends"
    from_version: int | None = None

    kind: ClassVar[str] = "delta"
    unit: ClassVar[str] = "version"

    def __post_init__(self) -> None:
        if not self.table:
            raise DeclarationError("`table` is empty: give the path or URI of a Delta table")
        if self.from_version is not None and self.from_version < 0:
            raise DeclarationError(f"from_version must be at least 0, got {self.from_version}")

    @property
    def name(self) -> str:
        """The path or URI."""
        return self.table

    @property
    def asset(self) -> tuple[str, ...]:
        """The parts of the path, below `delta`."""
        return ("delta", *(part for part in self.table.replace(":", "/").split("/") if part))

    @property
    def description(self) -> str:
        """The table, and how it is read."""
        how = "its change data feed" if self.changes == "feed" else "by appends"
        return f"The Delta table `{self.table}`, {how}."

    def open(self, landing_root: str) -> SourceReader:
        """Open the table, which need not exist yet."""
        from rivermark.ingest.source.delta_table_reader import DeltaReader  # Not for a declaration.

        return DeltaReader(self.table, self.from_version, feed=self.changes == "feed")

    def needed(self, planned: Collection[str], read: Collection[str]) -> NeededVersion | None:
        """Versions that are planned and not read, and those that are not planned yet."""
        from rivermark.ingest.source.delta_table_reader import is_snapshot, version_of

        if not planned:
            return None if self.from_version is None else NeededVersion(self.from_version)
        unread = [name for name in planned if name not in read]
        if not unread:
            return NeededVersion(max(map(version_of, planned)) + 1)
        oldest = min(unread, key=version_of)
        return NeededVersion(version_of(oldest), is_snapshot(oldest))
