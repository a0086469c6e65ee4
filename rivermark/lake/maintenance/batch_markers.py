"""Facts that a table's log must keep when it is shortened: the newest batch of each stream.

A stream that starts again looks in the log for its own last batch. One that stood still for longer
than the log reaches back would not find it, and could not distinguish a replay from a first write.
So before old commits go, an empty commit records the newest batch of every stream and generation.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import delta_table
from rivermark.lake.log import REMEMBERED, Commit, CommitLog


def newest_batches(log: CommitLog) -> list[Commit]:
    """The newest batch of each stream in its newest generation, newest first.

    A refreshing stream's batches are those by which it replaced days.
    """
    newest: dict[str, Commit] = {}
    for commit in log.history():
        stream = commit.metadata.get("stream")
        if stream is None or not {"batch", "refresh"} & commit.metadata.keys():
            continue
        before = newest.get(stream)
        if before is None or _generation(commit) > _generation(before):
            newest[stream] = commit
    return sorted(newest.values(), key=lambda c: c.version, reverse=True)


def write_batch_markers(table_path: str, run_id: str) -> None:
    """Write the newest batches down in a commit that adds no row. Holds no lock of its own."""
    log = CommitLog(table_path)
    metadata = {
        "upkeep": "remember",
        "run": run_id,
        REMEMBERED: {"all": log.knows_all(), "batches": [_marker(c) for c in newest_batches(log)]},
    }
    table = delta_table(table_path)
    nothing = pa.schema(table.schema().to_arrow()).empty_table()
    write_deltalake(table, nothing, mode="append", commit_properties=commit_properties(metadata))
    write_checksum(table_path, table.version())


def _generation(commit: Commit) -> int:
    return int(commit.metadata.get("generation", 0))


def _marker(commit: Commit) -> dict[str, Any]:
    return {
        "version": commit.version,
        "at": commit.at.isoformat(),
        "rows": commit.rows,
        "metadata": commit.metadata,
    }
