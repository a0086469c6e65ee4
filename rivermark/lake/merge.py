"""Keeping one row a key, the newest: for tables that follow what changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.commit_metadata import noted
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.model.errors import RivermarkError
from rivermark.model.table import Table


def merge_latest(
    lake: Lake,
    table: Table,
    rows: DataFrame | pa.Table,
    keys: Sequence[str],
    order_by: str,
    *,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Put each row in place of the row of its key, unless that one is as new or newer.

    Of several rows of one key the one with the largest `order_by` counts, whatever their order; of
    equals the first. So it needs no memory of batches: a replay changes nothing, and a batch that
    comes after a newer one does no harm. Rows without a key would be new at every replay, and are
    refused: the door sets them aside before. The rows are brought to the driver.
    """
    known = set(table.schema.fieldNames())
    unknown = [name for name in (*keys, order_by) if name not in known]
    if unknown or not keys:
        raise RivermarkError(f"table '{table.name}' cannot be merged by {[*keys]}: no {unknown}")
    found = latest(rows.toArrow() if isinstance(rows, DataFrame) else rows, keys, order_by)
    if any(found[key].null_count for key in keys):
        raise RivermarkError(f"table '{table.name}': rows without a key cannot be merged")
    if not found.num_rows:
        return
    same = " AND ".join(f'target."{key}" = source."{key}"' for key in keys)
    newer = f'source."{order_by}" > target."{order_by}" OR target."{order_by}" IS NULL'
    path = lake.path(table)
    with commit_lock(path):
        target = DeltaTable(path)
        merge = target.merge(
            found,
            predicate=same,
            source_alias="source",
            target_alias="target",
            commit_properties=noted(metadata or {}),
        )
        merge.when_matched_update_all(newer).when_not_matched_insert_all().execute()
        write_checksum(path, target.version())


def latest(rows: pa.Table, keys: Sequence[str], order_by: str) -> pa.Table:
    """One row a key: the one with the largest `order_by`; nothing is smaller than any value."""
    numbered = rows.append_column("_n", pa.array(range(rows.num_rows), pa.int64()))
    order = [(key, "ascending") for key in keys]
    by_age = numbered.sort_by([*order, (order_by, "descending"), ("_n", "ascending")])
    first = [True] * by_age.num_rows
    columns = [by_age[key].to_pylist() for key in keys]
    for n in range(1, by_age.num_rows):
        first[n] = any(column[n] != column[n - 1] for column in columns)
    return by_age.filter(pa.array(first, pa.bool_())).select(rows.column_names)
