"""Rows appended to the output's Delta table, one commit a batch: the default of every output."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, ClassVar

from pyspark.sql import SparkSession

from rivermark.lake.append.data_file import Tree
from rivermark.lake.append.table_files import TableFiles
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.filesystem import filesystem
from rivermark.lake.integrity.log_entry import read_entry
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.replace import replace_days
from rivermark.lake.rows_in_files import InFiles
from rivermark.model.declared import declared
from rivermark.model.errors import ReplayUnprovable
from rivermark.model.rows import Rows, as_rows
from rivermark.model.sink import (
    BatchIdentity,
    Delivery,
    OnReplace,
    Sink,
    SinkContext,
    SinkWriter,
)
from rivermark.model.table import Table


@declared("sink")
@dataclass(frozen=True)
class DeltaAppend(Sink):
    """Appends to the output's table; rows are final, and streams can follow them."""

    delivery: ClassVar[Delivery] = Delivery(
        "exactly once", "by the batch in each commit's metadata, looked up at the start of a run"
    )
    on_replace: ClassVar[OnReplace] = "replaces days"
    writes_table: ClassVar[bool] = True

    @property
    def target(self) -> str:
        """The kind of table."""
        return "Delta table, appended"

    def open(self, context: SinkContext) -> SinkWriter:
        """A writer of the table; `last` raises ReplayUnprovable where the log is cut."""
        return AppendWriter(context)


class AppendWriter(SinkWriter):
    """A writer whose rows may be data files of its table already."""

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._lake = Lake(context.root, context.retention)

    @cached_property
    def _table(self) -> TableWriter:
        """Looks the newest batch up; a replacement does not need it."""
        return TableWriter(self._lake, self._context.table, self._context.origin)

    def last(self) -> BatchIdentity | None:
        """The newest batch, by the table's log."""
        commit = self._table.last
        return None if commit is None else self._context.origin.batch(commit.metadata["batch"])

    def write(
        self, rows: Rows, identity: BatchIdentity, metadata: Mapping[str, Any] | None = None
    ) -> int:
        """Append a batch, unless the table holds it."""
        batch, batch_rows, described = identity.batch, as_rows(rows), dict(metadata or {})
        files = batch_rows.files_in(self._table.path)
        if files is None:
            plain = batch_rows.plain(SparkSession.builder.getOrCreate)
            self._table.append_once(plain, batch, metadata=described)
        else:
            # As `OutputWriter.in_files` has had them written.
            self._table.append_files_once(files, batch, metadata=described, in_order=True)
        return batch_rows.count()

    def files(self) -> TableFiles | None:
        """The writer of data files on executors that `write` commits, where there is one."""
        return self._table.files()

    def committed(self, rows: Rows, identity: BatchIdentity) -> Rows:
        """The rows as the table holds them."""
        return self.committed_files(identity)

    def committed_files(self, identity: BatchIdentity) -> InFiles:
        """The data files that the batch's commit added."""
        return committed_rows(self._lake, self._context.table, identity)

    def replace(
        self,
        rows: Rows,
        days: Collection[date],
        replacement: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> int:
        """Replace days in one commit."""
        described = dict(metadata or {"replacement": replacement})
        table, conflict = self._context.table, self._context.on_conflict
        plain = as_rows(rows).plain(SparkSession.builder.getOrCreate)
        return replace_days(self._lake, table, plain, days, described, on_conflict=conflict)


def committed_rows(lake: Lake, table: Table, identity: BatchIdentity) -> InFiles:
    """The rows that a batch committed to a table.

    Raises ReplayUnprovable where the commit, or a file of it, was cleaned away.
    """
    store, folder = filesystem(lake.path(table))
    rows = InFiles(lake.path(table), table, _adds(lake, table, identity))
    for name in rows.names:
        if not store.get_file_info(f"{folder}/{name}").is_file:
            raise _gone(table, identity, f"its file {name}")
    return rows


def _adds(lake: Lake, table: Table, identity: BatchIdentity) -> list[Tree]:
    """The actions that added data files in the batch's commit."""
    path = lake.path(table)
    for commit in CommitLog(path).backwards():
        made = commit.metadata
        if (made.get("stream"), made.get("generation"), made.get("batch")) == (
            identity.stream,
            identity.generation,
            identity.batch,
        ):
            store, log = filesystem(f"{path}/_delta_log")
            return [a for a in read_entry(store, log, commit.version) if "add" in a]
    raise _gone(table, identity, "its commit")


def _gone(table: Table, identity: BatchIdentity, what: str) -> ReplayUnprovable:
    return ReplayUnprovable(
        f"table '{table.name}' holds batch {identity.batch} of stream '{identity.stream}', which "
        f"another sink of it lacks, and {what} was cleaned away since: what that sink has to get "
        f"cannot be told. Start over on purpose: rivermark reset {identity.stream}"
    )
