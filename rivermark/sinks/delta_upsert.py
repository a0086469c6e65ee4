"""The latest row of each key, in the output's Delta table.

Which row of a key is the latest follows from the rows alone, never from the order in which they
come: the one with the largest version, a deletion before a row of the same version, then the one
with the greater values. So batches may be repeated, and may come in any order. Deleted keys are
kept with their versions in a second table, `<table>_tombstones`: without it an older row that
comes late would bring the key back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql.types import StructType

from rivermark.model.declared import declared
from rivermark.model.sink import (
    Delivery,
    OnReplace,
    Sink,
    SinkContext,
    SinkWriter,
)
from rivermark.model.table import Table
from rivermark.sinks.latest_row import check_versioned


@declared("sink")
@dataclass(frozen=True)
class DeltaUpsert(Sink):
    """Keeps the latest row of each of the table's `keys`, by a `version` column.

    A row replaces the row of its key unless that one has a larger version; a row without a version
    is older than any. `deleted` is a boolean column, or a condition in SQL over the row's columns:
    rows for which it holds delete their key. The table can be read at any time, whether or not the
    stream runs. Streams cannot follow it, because rows change after they have been read.
    """

    version: str
    deleted: str | None = None

    delivery: ClassVar[Delivery] = Delivery(
        "exactly once", "by key and version: writing a row again changes nothing"
    )
    on_replace: ClassVar[OnReplace] = "merges"
    writes_table: ClassVar[bool] = True
    updates_rows: ClassVar[bool] = True

    @property
    def target(self) -> str:
        """The kind of table."""
        return f"Delta table, latest row of each key by {self.version}"

    def check(self, table: Table) -> None:
        """Refuse a table without keys or without the version column."""
        check_versioned(table, self.version)

    def needed(self, table: Table) -> tuple[str, ...]:
        """The keys."""
        return table.keys

    def open(self, context: SinkContext) -> SinkWriter:
        """Create the table of tombstones where keys can be deleted."""
        from rivermark.sinks.upsert_writer import UpsertWriter  # Not for a declaration.

        return UpsertWriter(
            context, self.target, self.version, self.deleted, self.tables(context.table)
        )

    def tables(self, table: Table) -> tuple[Table, ...]:
        """The table of tombstones, where keys can be deleted."""
        return () if self.deleted is None else (tombstones_of(self, table),)


def tombstones_of(sink: DeltaUpsert, table: Table) -> Table:
    """The table of deleted keys and the versions at which they were deleted."""
    names = (*table.keys, *(() if sink.version in table.keys else (sink.version,)))
    return Table(
        name=f"{table.name}_tombstones",
        schema=StructType([table.schema[name] for name in names]),
        description=f"Deleted keys of `{table.name}`, each with the version that deleted it.",
        keys=table.keys,
        personal=tuple(name for name in table.personal if name in names),
    )
