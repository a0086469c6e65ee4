"""Writes batches to a table of the latest row of each key: merged by the keys, by delta-rs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from functools import cached_property, reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import dataset_of, delta_table, read_rows
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.log import CommitLog
from rivermark.lake.quoting import quoted
from rivermark.lake.schema import create_table
from rivermark.lake.sql import connection
from rivermark.lake.unbounded import writer_options
from rivermark.lake.written import note_written
from rivermark.model.json_text import json_text
from rivermark.model.rows import BatchRows, Rows, as_rows
from rivermark.model.sink import (
    BatchIdentity,
    SinkContext,
    SinkWriter,
)
from rivermark.model.table import Table
from rivermark.sinks.latest_row import is_deletion
from rivermark.sinks.python_rows import python_rows
from rivermark.sinks.undelivered import Refused, Undelivered, keyed

if TYPE_CHECKING:
    from pyarrow import dataset


MERGED: Final = 1_000_000
"""Rows that are merged at a time."""


def _lake(context: SinkContext) -> Lake:
    return Lake(context.root, context.retention)


class UpsertWriter(SinkWriter):
    """Merges each batch in one commit; deletions are kept with their versions beside it."""

    def __init__(
        self,
        context: SinkContext,
        target: str,
        version: str,
        deleted: str | None,
        tombstones: Sequence[Table],
    ) -> None:
        self._version = version
        self._deleted = is_deletion(deleted)
        self._table = context.table
        self._origin = context.origin
        self._lake = _lake(context)
        self._path = self._lake.path(context.table)
        self._undelivered = Undelivered(context, target)
        self._tombstones = next(iter(tombstones), None)
        for table in tombstones:
            create_table(self._lake, table)

    def last(self) -> BatchIdentity | None:
        """The newest batch, as the table's log says it."""
        return self._last

    @cached_property
    def _last(self) -> BatchIdentity | None:
        for commit in CommitLog(self._path).history():
            metadata = commit.metadata
            ours = (metadata.get("stream"), metadata.get("generation"))
            if ours == (self._origin.stream, self._origin.generation) and "batch" in metadata:
                return self._origin.batch(int(metadata["batch"]))
        return None

    def write(
        self, rows: Rows, identity: BatchIdentity, metadata: Mapping[str, Any] | None = None
    ) -> int:
        """Merge a batch, unless the table holds it."""
        described = {
            "stream": identity.stream,
            "generation": identity.generation,
            "batch": identity.batch,
            "run": self._origin.run_id,
            **(metadata or {}),
        }
        count = self._merge(rows, described, overrule=False)
        self._last = identity
        return count

    def replace(
        self,
        rows: Rows,
        days: Collection[date],
        replacement: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> int:
        """Merge the rows; of equal versions the recomputed row counts.

        Rows of the days that the recompute no longer returns stay, since the key may have rows of
        other days.
        """
        return self._merge(rows, metadata or {"replacement": replacement}, overrule=True)

    def _merge(self, rows: Rows, metadata: Mapping[str, Any], *, overrule: bool) -> int:
        """Merge the rows, those of a key in one commit: what is more than memory in several.

        The last one says the batch: after a kill before it the batch is merged again, which changes
        nothing of what was merged.
        """
        batch_rows = as_rows(rows)
        count = batch_rows.count()
        parts = -(-count // MERGED)
        without = {name: value for name, value in metadata.items() if name != "batch"}
        for part in range(parts):
            new = self._part(batch_rows, part, parts)
            new = self._with_keys(new, metadata)
            if new.num_rows:
                described = metadata if part == parts - 1 else without
                self._merge_part(new, described, overrule=overrule)
        return count

    def _with_keys(self, rows: pa.Table, metadata: Mapping[str, Any]) -> pa.Table:
        """The rows that have a key; the others are put aside, as no other can replace them."""
        lacking = reduce(pc.or_, (pc.is_null(rows[key]) for key in self._table.keys))
        if not pc.any(lacking).as_py():
            return rows
        keyless = rows.filter(lacking)
        # Each key once, whichever batch or replacement brings it.
        of = BatchIdentity(self._origin.stream, self._origin.generation, 0)
        nulls = [key for key in self._table.keys if keyless[key].null_count]
        reason = (
            f"table {self._table.name}: column '{nulls[0]}' is a key and null: give it a value in "
            "the build"
        )
        bodies = keyed(of, (json_text(row) for row in python_rows(keyless)))
        refused = [Refused(body, key, reason) for body, key in bodies]
        self._undelivered.add(refused, {"stream": self._origin.stream, "without": "key"})
        return rows.filter(pc.invert(lacking))

    def _part(self, rows: BatchRows, part: int, parts: int) -> pa.Table:
        """The rows of a share of the keys."""
        schema = arrow_schema(self._table.schema)
        if parts == 1:
            return rows.arrow().select(schema.names).cast(schema)
        names, keys = (", ".join(map(quoted, each)) for each in (schema.names, self._table.keys))
        sql = f"SELECT {names} FROM rows WHERE hash({keys}) % {parts} = {part}"  # noqa: S608
        with connection({"rows": rows.readable()}) as duckdb:
            chosen: pa.Table = duckdb.sql(sql).to_arrow_table()
        return chosen.cast(schema)

    def _merge_part(self, new: pa.Table, metadata: Mapping[str, Any], *, overrule: bool) -> None:
        with commit_lock(self._path):
            changed = self._changes(new, overrule=overrule)
            if self._tombstones is not None:
                # First the tombstones: after a kill in between, the repeated batch finds the same
                # latest rows, whereas a deletion without its tombstone could be undone.
                columns = self._tombstones.schema.fieldNames()
                deleted = changed.filter(changed["_deleted"]).select(columns)
                self._commit(self._lake.path(self._tombstones), deleted, metadata)
            self._commit(self._path, changed, metadata)

    def _changes(self, new: pa.Table, *, overrule: bool) -> pa.Table:
        """The rows that become the latest of their keys, with a mark on deletions."""
        schema = arrow_schema(self._table.schema)
        keys = ", ".join(quoted(key) for key in self._table.keys)
        version = quoted(self._version)
        # Of a deletion only key and version count, and no more is kept of it.
        values = ", ".join(
            f"CASE WHEN NOT _deleted THEN CAST({quoted(name)} AS VARCHAR) END DESC NULLS LAST"
            for name in schema.names
        )
        # Every name in it is declared, and `deleted` is part of the declaration.
        sql = f"""
            WITH every AS (
                SELECT *, {self._deleted} AS _deleted, {int(overrule)} AS _rank, true AS _new
                FROM new
                UNION ALL BY NAME
                SELECT *, false AS _deleted, 0 AS _rank, false AS _new
                FROM current WHERE ({keys}) IN (SELECT ({keys}) FROM new)
                UNION ALL BY NAME
                SELECT *, true AS _deleted, 0 AS _rank, false AS _new
                FROM tombstones WHERE ({keys}) IN (SELECT ({keys}) FROM new)
            ), latest AS (
                SELECT * FROM every QUALIFY 1 = row_number() OVER (
                    PARTITION BY {keys}
                    ORDER BY {version} DESC NULLS LAST, _rank DESC, _deleted DESC, {values}, _new
                )
            )
            SELECT {", ".join(map(quoted, schema.names))}, _deleted FROM latest
            WHERE _new OR _deleted AND ({keys}) IN (SELECT ({keys}) FROM current)
            """  # noqa: S608
        tables = {"new": in_memory(new), "current": self._near(self._path, new)}
        if self._tombstones is None:
            tables["tombstones"] = in_memory(new.select([*self._table.keys]).slice(0, 0))
        else:
            tables["tombstones"] = self._near(self._lake.path(self._tombstones), new)
        with connection(tables) as duckdb:
            changed: pa.Table = duckdb.sql(sql).to_arrow_table()
        return changed.cast(schema.append(pa.field("_deleted", pa.bool_())))

    def _near(self, path: str, new: pa.Table) -> dataset.Dataset:
        """The rows of the new rows' keys, and of a key of several columns perhaps some more."""
        conditions = []
        for key in self._table.keys:
            column, values = pc.field(key), new[key].unique()
            if pa.types.is_string(values.type):
                # delta-rs gives the bounds of a file's texts as string_view, which Arrow cannot
                # compare with texts. As another type they are not compared with a file's bounds.
                column, values = column.cast(pa.large_string()), values.cast(pa.large_string())
            ends = pc.min_max(values)
            # By the bounds most files are skipped.
            within = (column >= ends["min"]) & (column <= ends["max"])
            conditions.append(within & column.isin(values))
        rows = read_rows(dataset_of(delta_table(path)), filter=reduce(and_, conditions))
        return in_memory(rows)

    def _commit(self, path: str, changed: pa.Table, metadata: Mapping[str, Any]) -> None:
        if not changed.num_rows:
            return
        table = delta_table(path)
        self._origin.check()
        columns = [name for name in changed.column_names if name != "_deleted"]
        updates = {quoted(name): f"source.{quoted(name)}" for name in columns}
        merge = table.merge(
            changed,
            predicate=" AND ".join(
                f"target.{quoted(key)} = source.{quoted(key)}" for key in self._table.keys
            ),
            source_alias="source",
            target_alias="target",
            commit_properties=commit_properties(metadata),
            **writer_options(table, changed),
        )
        if "_deleted" in changed.column_names:
            merge = merge.when_matched_delete("source._deleted")
            merge = merge.when_matched_update(updates)
            merge = merge.when_not_matched_insert(updates, "NOT source._deleted")
        else:
            merge = merge.when_matched_update(updates).when_not_matched_insert(updates)
        merge.execute()
        write_checksum(path, table.version())
        if path == self._path and "batch" in metadata:
            note_written(self._lake, self._table, self._origin, int(metadata["batch"]))


def in_memory(rows: pa.Table) -> dataset.Dataset:
    """Rows of this process as what DuckDB reads."""
    from pyarrow import dataset

    return dataset.dataset(rows)
