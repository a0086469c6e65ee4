"""Appending a micro-batch to a table exactly once, and knowing afterwards that it was."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction
from pyspark.sql import DataFrame, SparkSession

from rivermark.lake.append.by_executors import write_files
from rivermark.lake.append.data_file import Tree, in_time_order, remove_files
from rivermark.lake.append.delta_commit import DeltaCommitter, metrics_of
from rivermark.lake.append.table_files import TableFiles, files_of
from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.commit_metadata import commit_properties, user_metadata
from rivermark.lake.delta import delta_table
from rivermark.lake.dictionary_texts import as_texts
from rivermark.lake.foreign_constraints import constraints_named
from rivermark.lake.integrity.log_check import check_log
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock, newest_version, sync_commits
from rivermark.lake.log import Commit, CommitLog
from rivermark.lake.rows_in_files import InFiles
from rivermark.lake.unbounded import options_for
from rivermark.lake.written import note_written
from rivermark.model.errors import ReplayUnprovable, RivermarkError
from rivermark.model.sink import Origin
from rivermark.model.table import Table

LOG: Final = logging.getLogger("rivermark")
SKEW: Final = timedelta(days=1)
"""How far a clock may have been set back since an origin began, without a batch being missed."""


class TableWriter:
    """The one writer of a stream's table within a run.

    A micro-batch can be a replay only of what the run before it left unfinished, so whether it is
    in the table already is looked up in the commits' metadata once, at the start, and kept in
    memory from then on. Delta's own way (txnAppId, txnVersion) asks the table's state for its
    transactions, which costs a Spark job for every commit
    (docs/decisions/0001-exactly-once-by-commit-metadata.md). Two writers are kept apart by the
    stream's lease: the origin's `check` is called before each commit.
    """

    def __init__(self, lake: Lake, table: Table, origin: Origin) -> None:
        """Look up the newest batch of this origin in the table's log."""
        self._lake = lake
        self.table = table
        self.path = lake.path(table)
        self.origin = origin
        check_log(self.path)
        self._last = self._find_last()
        self._appender = DeltaCommitter(self.path)
        self._rust: DeltaTable | None = None
        self._log = CommitLog(self.path)
        self._version: int | None = None
        self._schema_mode: Literal["merge"] | None = None
        self._summed = True
        self._unsure = False
        """Whether an append failed, which may be behind its commit."""

    @property
    def last(self) -> Commit | None:
        """The newest commit of this stream and generation, or None."""
        if self._unsure:
            self._last, self._unsure = self._find_last(), False
        return self._last

    def metadata_of(self, batch: int) -> dict[str, Any] | None:
        """The metadata of that batch's commit, when it is the newest of this origin."""
        if self.last is None or int(self.last.metadata["batch"]) != batch:
            return None
        return self.last.metadata

    def _find_last(self) -> Commit | None:
        log = CommitLog(self.path)
        began = self.origin.since - SKEW
        oldest: Commit | None = None
        for commit in log.history():
            oldest = commit
            if self._is_ours(commit):
                return commit
            if commit.at < began:
                return None
        if oldest is not None and not log.knows_all():
            raise ReplayUnprovable(
                f"table '{self.table.name}': its log begins at version {oldest.version} and shows "
                f"no batch of stream '{self.origin.stream}', which began before that; whether the "
                "last batch was written cannot be told. Rebuild the table from its inputs "
                "(rivermark reprocess)."
            )
        return None

    def _is_ours(self, commit: Commit) -> bool:
        metadata = commit.metadata
        return (
            metadata.get("stream") == self.origin.stream
            and metadata.get("generation") == self.origin.generation
            and "batch" in metadata
        )

    def has(self, batch: int) -> bool:
        """Returns True if that batch is in the table."""
        return self.last is not None and int(self.last.metadata["batch"]) >= batch

    def append_once(
        self,
        rows: DataFrame | pa.Table,
        batch: int,
        *,
        metadata: dict[str, Any] | None = None,
    ) -> bool:
        """Append the rows as one commit, unless the table holds the batch; returns whether it did.

        An Arrow table is one file, committed by the driver without a Spark job. A frame is written
        by executors: persist what is dear to compute (rivermark/lake/append/by_executors.py).
        """
        if self.has(batch):
            return False
        files = None if isinstance(rows, pa.Table) else self.files()
        if files is not None and not isinstance(rows, pa.Table):
            adds = write_files(rows, files, self.table.event_time)
            return self.append_files_once(adds, batch, metadata=metadata, in_order=True)
        described = self._described(batch, metadata)
        with commit_lock(self.path, synced=True):
            if not self._append_in_driver(rows, described):
                before = newest_version(self.path)
                self._append_by_library(rows, described)
                sync_commits(self.path, before)
        self._note(described)
        return True

    def files(self) -> TableFiles | None:
        """The writer with which tasks write data files for `append_files_once`.

        None for a table that asks more of its writers than columns: it is written by Spark.
        """
        return self._appender.files() or files_of(delta_table(self.path))

    def append_files_once(
        self,
        adds: Sequence[Tree],
        batch: int,
        *,
        metadata: dict[str, Any] | None = None,
        lateness: timedelta = timedelta(0),
        in_order: bool = False,
    ) -> bool:
        """Append data files that were written by `files` as one commit.

        As `append_once`, and where the commit fails the files are removed. Where the table holds
        the batch they may be those of its commit: they stay, and maintenance removes them
        otherwise, like those of a process that was killed before the commit.

        Files of a table with an event time are committed in its order, so that a reader may stop
        between two of them: one whose watermark has at least the `lateness`. Files that overlap
        by more are written again by ranges of the time, by executors where there is a session.
        `in_order` says that the files are such ranges already.

        Raises:
            RivermarkError: The table asks more of its writers now than when they were written.
        """
        if self.has(batch):
            return False
        described = self._described(batch, metadata)
        if not in_order:
            adds = self._ordered(adds, lateness)
        with commit_lock(self.path, synced=True):
            if not self._appender.append_files(adds, described, self.origin.check):
                before = newest_version(self.path)
                self._again_upon_changes(lambda: self._add_by_library(adds, described))
                sync_commits(self.path, before)
        self._note(described)
        return True

    def _ordered(self, adds: Sequence[Tree], lateness: timedelta) -> Sequence[Tree]:
        event_time = self.table.event_time
        if event_time is None or len(adds) < 2:
            return adds
        ordered = in_time_order(adds, event_time, lateness)
        files = self.files() if ordered is None else None
        if ordered is not None or files is None:
            return ordered or adds
        rows = InFiles(self.path, self.table, adds)
        spark = SparkSession.getActiveSession()
        again = (
            files.write(rows.arrow().sort_by(event_time))
            if spark is None
            else write_files(rows.frame(spark), files, event_time)
        )
        rows.discard()
        return again

    def _described(self, batch: int, metadata: dict[str, Any] | None) -> dict[str, Any]:
        self._unsure = True
        return {
            "stream": self.origin.stream,
            "generation": self.origin.generation,
            "batch": batch,
            "run": self.origin.run_id,
            **(metadata or {}),
        }

    def _note(self, described: dict[str, Any]) -> None:
        self._last, self._unsure = Commit(-1, datetime.now(UTC), "WRITE", described), False
        note_written(self._lake, self.table, self.origin, described["batch"])

    def rows_written(self, batch: int) -> int:
        """Rows of that batch by its commit's own metrics; looks only at commits not seen before."""
        if self._version is None or not self._log.holds(self._version):
            # Nothing is read yet, or the log after our last batch was cleaned since.
            ours = (c.version for c in self._log.backwards() if self._is_ours(c))
            self._version = next(ours, 0)
        rows = 0
        while (commit := self._log.read(self._version)) is not None:
            if self._is_ours(commit) and int(commit.metadata["batch"]) == batch:
                rows = commit.rows or 0
            self._version += 1
        return rows

    def _append_in_driver(self, rows: DataFrame | pa.Table, metadata: dict[str, Any]) -> bool:
        check = self.origin.check
        return isinstance(rows, pa.Table) and self._appender.append(rows, metadata, check)

    def _append_by_library(self, rows: DataFrame | pa.Table, metadata: dict[str, Any]) -> None:
        with constraints_named(self.path, self.table.name, rows):
            if isinstance(rows, pa.Table):
                self._again_upon_changes(lambda: self._write_arrow(rows, metadata))
            else:
                self.origin.check()
                # A table that asks more than columns: in one file, which nobody reads by half.
                writer = rows.coalesce(1).write.format("delta").mode("append")
                writer.option("userMetadata", user_metadata(metadata)).save(self.path)

    def _again_upon_changes(self, commit: Callable[[], None]) -> None:
        """Commit by delta-rs, once more where the table was changed since it was opened.

        Another writer changed its columns or properties: nothing was committed then, and the lock
        lets none come between. Columns that only a newer declaration has stay empty.
        """
        try:
            commit()
        except CommitFailedError:
            self._rust = None
            self._schema_mode = "merge"
            commit()

    def _write_arrow(self, rows: pa.Table, metadata: dict[str, Any]) -> None:
        table, rows = self._opened(), as_texts(rows)
        self.origin.check()
        write_deltalake(
            table,
            rows,
            mode="append",
            schema_mode=self._schema_mode,
            commit_properties=commit_properties(metadata),
            **options_for(rows),
        )
        self._sum_up(table)

    def _add_by_library(self, adds: Sequence[Tree], metadata: dict[str, Any]) -> None:
        table = self._opened()
        try:
            self.origin.check()
            if files_of(table) is None:
                raise RivermarkError(
                    f"table '{self.table.name}' was given constraints, partitions or features "
                    "while a batch for it was written; nothing was committed. Run again: the same "
                    "input is read again"
                )
        except BaseException:
            remove_files(self.path, adds)
            raise
        table.create_write_transaction(
            [_added(each["add"]) for each in adds],
            "append",
            table.schema(),
            commit_properties=commit_properties(metadata, operationMetrics=metrics_of(adds)),
        )
        table.update_incremental()
        self._sum_up(table)

    def _opened(self) -> DeltaTable:
        if self._rust is None or not self._log.holds(self._rust.version()):
            # Or maintenance cleaned the log past what was read: it cannot be read on from there.
            self._rust = delta_table(self.path)
        return self._rust

    def _sum_up(self, table: DeltaTable) -> None:
        try:
            # Where it cannot be known, it is not looked for again at each batch of this run.
            self._summed = self._summed and write_checksum(self.path, table.version())
        except (OSError, DeltaError) as error:
            LOG.warning(
                "%s: committed, but its checksum could not be written: %s", self.path, error
            )


def _added(add: Tree) -> AddAction:
    """An action of the log as delta-rs takes it."""
    return AddAction(
        path=add["path"],
        size=add["size"],
        partition_values=add["partitionValues"],
        modification_time=add["modificationTime"],
        data_change=add["dataChange"],
        stats=add["stats"],
    )
