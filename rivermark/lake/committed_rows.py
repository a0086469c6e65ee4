"""The rows of one batch as its commit holds them, whatever became of the table since."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from rivermark.lake.delta import read_file
from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.integrity.data_file_check import check_data_file
from rivermark.lake.integrity.log_entry import read_entry
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.schema import arrow_schema
from rivermark.model.errors import ReplayUnprovable
from rivermark.model.sink import BatchIdentity
from rivermark.model.table import Table

if TYPE_CHECKING:
    from rivermark.model.sink import Rows


def committed_rows(lake: Lake, table: Table, identity: BatchIdentity, again: Rows) -> Rows:
    """The rows that a batch committed to a table; `again` is what it was computed as since.

    In this process where `again` is, else as executors read them. Raises ReplayUnprovable where
    the commit, or a file of it, was cleaned away.
    """
    store, folder = filesystem(lake.path(table))
    names = _files(lake, table, identity)
    missing = [n for n in names if not store.get_file_info(f"{folder}/{n}").is_file]
    if missing:
        raise _gone(table, identity, f"its file {missing[0]}")
    if not isinstance(again, pa.Table):
        paths = [f"{lake.path(table)}/{name}" for name in names]
        return again.sparkSession.read.schema(table.schema).parquet(*paths)
    schema = arrow_schema(table.schema)
    parts = []
    for name in names:
        if is_local(lake.path(table)):
            check_data_file(folder, name)
        part = read_file(store, f"{folder}/{name}", schema.names)
        own = pa.schema([field for field in schema if field.name in part.schema.names])
        parts.append(part.select(own.names).cast(own))
    every = pa.concat_tables([schema.empty_table(), *parts], promote_options="default")
    return every.select(schema.names)


def _files(lake: Lake, table: Table, identity: BatchIdentity) -> list[str]:
    """The data files that the batch's commit added, by their paths inside the table's folder."""
    path = lake.path(table)
    for commit in CommitLog(path).backwards():
        made = commit.metadata
        if (made.get("stream"), made.get("generation"), made.get("batch")) == (
            identity.stream,
            identity.generation,
            identity.batch,
        ):
            store, log = filesystem(f"{path}/_delta_log")
            actions = read_entry(store, log, commit.version)
            return [str(PurePosixPath(unquote(a["add"]["path"]))) for a in actions if "add" in a]
    raise _gone(table, identity, "its commit")


def _gone(table: Table, identity: BatchIdentity, what: str) -> ReplayUnprovable:
    return ReplayUnprovable(
        f"table '{table.name}' holds batch {identity.batch} of stream '{identity.stream}', which "
        f"another sink of it lacks, and {what} was cleaned away since: what that sink has to get "
        f"cannot be told. Start over on purpose: rivermark reset {identity.stream}"
    )
