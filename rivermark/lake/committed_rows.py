"""The rows of one batch as its commit holds them, whatever became of the table since."""

from __future__ import annotations

from rivermark.lake.append.data_file import Tree
from rivermark.lake.filesystem import filesystem
from rivermark.lake.integrity.log_entry import read_entry
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.rows_in_files import InFiles
from rivermark.model.errors import ReplayUnprovable
from rivermark.model.sink import BatchIdentity
from rivermark.model.table import Table


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
