"""Rows appended to the output's Delta table, one commit a batch: the default of every output."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.committed_rows import committed_rows
from rivermark.lake.lake import Lake
from rivermark.lake.replace import replace_days
from rivermark.model.declared import declared
from rivermark.model.sink import (
    BatchIdentity,
    Delivery,
    OnReplace,
    Rows,
    Sink,
    SinkContext,
    SinkWriter,
)


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
        return _Writer(context)


class _Writer(SinkWriter):
    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._lake = Lake(context.root, context.retention)

    @cached_property
    def _table(self) -> TableWriter:
        """Looks the newest batch up; a replacement does not need it."""
        return TableWriter(self._lake, self._context.table, self._context.origin)

    def last(self) -> BatchIdentity | None:
        commit = self._table.last
        return None if commit is None else self._context.origin.batch(commit.metadata["batch"])

    def write(
        self, rows: Rows, identity: BatchIdentity, metadata: Mapping[str, Any] | None = None
    ) -> int:
        self._table.append_once(rows, identity.batch, metadata=dict(metadata or {}))
        if isinstance(rows, pa.Table):
            return int(rows.num_rows)
        return self._table.rows_written(identity.batch)

    def committed(self, rows: Rows, identity: BatchIdentity) -> Rows:
        return committed_rows(self._lake, self._context.table, identity, rows)

    def replace(
        self,
        rows: Rows,
        days: Collection[date],
        replacement: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> int:
        described = dict(metadata or {"replacement": replacement})
        table, conflict = self._context.table, self._context.on_conflict
        return replace_days(self._lake, table, rows, days, described, on_conflict=conflict)
