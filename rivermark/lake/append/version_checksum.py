"""The version checksum beside a commit: what spares Spark a job each time it opens a table.

Delta keeps the protocol, the metadata and the size of a version in `<version>.crc`. Spark's own
commits write it, those of delta-rs do not, and without it Delta finds protocol and metadata by a
Spark job over the log: 0.25 CPU seconds warm, 1.6 cold, for each table that a stream reads, against
0.02 with it. The file is a help and never the truth: where it cannot be known exactly, none is
written, because Delta compares it with the state that it computes.

Format: "Version Checksum File" of the Delta protocol. Of its fields only the required ones are
written, and `rivermark` (rivermark/lake/integrity/version_sums.py).
"""

from __future__ import annotations

import json
from typing import Any, Final

from deltalake import DeltaTable
from pyarrow import fs

from rivermark.lake.checkpoint import sum_up_checkpoint
from rivermark.lake.delta import delta_table
from rivermark.lake.filesystem import content_of, filesystem, put_file
from rivermark.lake.integrity.log_entry import Actions, entry_path, read_entry, sums_path
from rivermark.lake.integrity.version_sums import REQUIRED, Checksum, sums_in, sums_text
from rivermark.lake.statistics import file_sizes

LOOKED_BACK: Final = 1000
"""Commits searched for the newest metadata where the version before has no checksum."""


def write_checksum(table_path: str, version: int) -> bool:
    """Write the checksum of a committed version, and return whether it exists now.

    A damaged one is rewritten. Call it under the table's commit lock, or as the only writer
    of that version.
    """
    store, folder = filesystem(f"{table_path}/_delta_log")
    # delta-rs writes one with a commit of its own, and no checksum file for it.
    sum_up_checkpoint(table_path, version)
    if _checksum(store, folder, version) is not None:
        return True
    checksum = _summed_up(table_path, store, folder, version)
    if checksum is None:
        return False
    put_checksum(store, folder, version, checksum)
    return True


def put_checksum(store: fs.FileSystem, folder: str, version: int, sums: Checksum) -> None:
    """Write the sums of a version beside its commit."""
    entry = content_of(store, entry_path(folder, version))
    # Whole or not at all: a reader that finds half a file would have to distrust the version.
    put_file(store, sums_path(folder, version), sums_text(sums, version, entry), durable=False)


def checksum_of(table_path: str, version: int) -> Checksum | None:
    """The sums of a version; None where the log does not say them exactly."""
    store, folder = filesystem(f"{table_path}/_delta_log")
    written = _checksum(store, folder, version)
    return written or _summed_up(table_path, store, folder, version)


def checksum_after(before: Checksum, commit: Actions) -> Checksum | None:
    """The sums after one more commit; None where the commit does not say enough."""
    size, files = before["tableSizeBytes"], before["numFiles"]
    metadata, protocol = before["metadata"], before["protocol"]
    for action in commit:
        if "add" in action:
            size, files = size + action["add"]["size"], files + 1
        elif "remove" in action:
            if action["remove"].get("size") is None:
                return None
            size, files = size - action["remove"]["size"], files - 1
        metadata = action.get("metaData", metadata)
        protocol = action.get("protocol", protocol)
    if metadata is None or protocol is None:
        return None
    return _sums(size, files, metadata, protocol)


def actions_of(store: fs.FileSystem, folder: str, version: int) -> Actions:
    """The actions of a commit, line by line; nothing where the log does not hold it."""
    try:
        return read_entry(store, folder, version)
    except FileNotFoundError:
        return []


def _summed_up(table_path: str, store: fs.FileSystem, folder: str, version: int) -> Checksum | None:
    before = _checksum(store, folder, version - 1)
    checksum = (
        None if before is None else checksum_after(before, actions_of(store, folder, version))
    )
    return checksum or _of_state(table_path, store, folder, version)


def _checksum(store: fs.FileSystem, folder: str, version: int) -> Checksum | None:
    """The checksum on disk; that of an empty table before version 0."""
    if version < 0:
        return _sums(0, 0, None, None)
    content = content_of(store, sums_path(folder, version))
    sums = None if content is None else sums_in(content, version)
    if sums is None:
        return None
    return _sums(*(sums[name] for name in REQUIRED))


def _of_state(table_path: str, store: fs.FileSystem, folder: str, version: int) -> Checksum | None:
    """The sums from the whole state, and the metadata as the log has it, to the letter.

    None where the state has another one: an entry that a table checkpoint stands for is checked by
    no reader, and delta-rs takes the columns of a table from the checksum.
    """
    metadata = protocol = None
    for older in range(version, max(-1, version - LOOKED_BACK), -1):
        for action in actions_of(store, folder, older):
            metadata = metadata or action.get("metaData")
            protocol = protocol or action.get("protocol")
        if metadata and protocol:
            table = delta_table(table_path, version=version)
            if not _is_of(metadata, table):
                return None
            sizes = file_sizes(table)
            return _sums(sum(sizes), len(sizes), metadata, protocol)
    return None


def _is_of(metadata: dict[str, Any], table: DeltaTable) -> bool:
    """Returns True if an opened version has that metadata."""
    state = table.metadata()
    fields = json.loads(metadata["schemaString"])["fields"]
    return (
        metadata["id"] == state.id
        and metadata.get("partitionColumns", []) == state.partition_columns
        and metadata.get("configuration", {}) == state.configuration
        and [field["name"] for field in fields] == [f.name for f in table.schema().fields]
    )


def _sums(size: int, files: int, metadata: Any, protocol: Any) -> Checksum:
    return {
        "tableSizeBytes": size,
        "numFiles": files,
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": metadata,
        "protocol": protocol,
    }
