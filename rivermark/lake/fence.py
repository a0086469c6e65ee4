"""A fence in a table's log: a commit in progress of an earlier owner of the stream cannot be made.

A run that was paused between the check of its lease and its commit would wake beside its successor
and commit what that one has committed. The successor therefore changes a property of each table
before it looks up which batches they hold. A commit for an older version then conflicts with
changed metadata, for our own appender as for delta-rs and Spark, and the next attempt checks the
lease again.
"""

from __future__ import annotations

from typing import Final

from deltalake.exceptions import CommitFailedError

from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.delta import delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.model.table import Table

PROPERTY: Final = "rivermark.lease."
"""Prefix of the table property that holds the token of a stream's newest owner."""
TRIES: Final = 8


def fence(lake: Lake, table: Table, stream: str, token: int) -> None:
    """Let no commit be made that an owner of the stream with a lower token has begun.

    Without effect for a table that does not exist. Raises CommitFailedError where other writers
    came between again and again.
    """
    if not lake.exists(table):
        return
    path = lake.path(table)
    for left in reversed(range(TRIES)):
        try:
            with commit_lock(path):
                delta = delta_table(path)
                delta.alter.set_table_properties(
                    {f"{PROPERTY}{stream}": str(token)}, raise_if_not_exists=False
                )
                write_checksum(path, delta.version())
            return
        except CommitFailedError:
            if not left:
                raise
