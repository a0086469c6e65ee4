"""Demands of a table's metadata on an append: columns, statistics, checkpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from deltalake import Schema

from rivermark.lake.append.data_file import leaves
from rivermark.lake.dictionary_texts import text_type

INDEXED: Final = 32
"""Columns with statistics where the table does not say how many, as with Delta on Spark."""
CHECKPOINT_EACH: Final = 100
"""Commits from one table checkpoint to the next where the table does not say, as with delta-rs."""
WRITER: Final = 2
"""The highest writer version of the Delta protocol whose demands on an append are met here."""


@dataclass(frozen=True)
class TableFeatures:
    """The columns, those with statistics, and how many commits lie between table checkpoints."""

    columns: pa.Schema
    skipped_by: list[tuple[str, ...]]
    checkpoint_each: int

    def fit(self, rows: pa.Table) -> pa.Table | None:
        """The rows with the table's columns in its order; None where their types do not agree.

        Columns that the rows lack are empty. Whether a value within a list, map or struct may be
        missing, and what lists call theirs, is as the table has it: Spark's types are stricter.
        """
        types = {field.name: field.type for field in rows.schema}
        if len(types) < rows.num_columns or not types.keys() <= set(self.columns.names):
            return None
        if any(_loose(types.get(f.name, f.type)) != _loose(f.type) for f in self.columns):
            return None
        fields = [
            field.with_type(types[field.name])
            if pa.types.is_dictionary(types.get(field.name, field.type))
            else field
            for field in self.columns
        ]
        columns = [
            rows[field.name].cast(field.type)
            if field.name in types
            else pa.nulls(rows.num_rows, field.type)
            for field in fields
        ]
        return pa.table(columns, schema=pa.schema(fields))


def _loose(kind: pa.DataType) -> pa.DataType:
    """A type whose inner values may all be missing, and texts for their codes."""
    kind = text_type(kind)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _loose(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_loose(kind.key_type), _loose(kind.item_type))
    return pa.list_(_loose(kind.value_type)) if pa.types.is_list(kind) else kind


def features_for(columns: pa.Schema) -> TableFeatures:
    """Those of files that stand in no table: nothing is skipped of them."""
    return TableFeatures(columns, [], CHECKPOINT_EACH)


def features_of(metadata: Mapping[str, Any], protocol: Mapping[str, Any]) -> TableFeatures | None:
    """The shape by the log's own metadata; None for a table that asks for more than columns.

    That are partitions, columns that must not be null or have rules of their own, statistics of
    columns that it lacks, and every feature of the protocol above writer version 2.
    """
    configured: Mapping[str, str] = metadata["configuration"]
    fields = json.loads(metadata["schemaString"])["fields"]
    plain = protocol["minReaderVersion"] == 1 and protocol["minWriterVersion"] <= WRITER
    if not plain or metadata["partitionColumns"] or any(map(_asks, fields)):
        return None
    columns = pa.schema(Schema.from_json(metadata["schemaString"]).to_arrow())
    indexed = int(configured.get("delta.dataSkippingNumIndexedCols", INDEXED))
    paths = list(leaves(columns))
    skipped_by = paths if indexed < 0 else paths[:indexed]
    if named := configured.get("delta.dataSkippingStatsColumns"):
        names = named.split(",")
        if not set(names) <= set(columns.names):
            return None
        skipped_by = [path for path in paths if path[0] in names]
    return TableFeatures(
        columns=columns,
        skipped_by=skipped_by,
        checkpoint_each=int(configured.get("delta.checkpointInterval", CHECKPOINT_EACH)),
    )


def _asks(field: Mapping[str, Any]) -> bool:
    """Returns True if a column, or one inside it, asks more of its writer than a type."""
    kind = field["type"]
    inner = kind.get("fields", ()) if isinstance(kind, dict) else ()
    rules = any(key.startswith("delta.") for key in field["metadata"])
    return not field["nullable"] or rules or any(map(_asks, inner))
