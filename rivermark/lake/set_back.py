"""Tables that a RESTORE set back: their log has the last batch, and their files have not."""

from __future__ import annotations

from rivermark.lake.delta import delta_table
from rivermark.lake.filesystem import filesystem
from rivermark.lake.integrity.log_entry import read_entry
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.model.errors import CheckpointIncompatible
from rivermark.model.sink import Origin
from rivermark.model.table import Table

RESTORE = "RESTORE"


def check_not_set_back(lake: Lake, table: Table, origin: Origin, by: str = "batch") -> None:
    """Refuse a table of whose last batch a later RESTORE took files away.

    Raises CheckpointIncompatible.
    """
    log = CommitLog(lake.path(table))
    restored: int | None = None
    for commit in log.backwards():
        metadata = commit.metadata
        ours = (metadata.get("stream"), metadata.get("generation"))
        if ours == (origin.stream, origin.generation) and by in metadata:
            if restored is not None and _lacks_files(lake.path(table), commit.version):
                raise CheckpointIncompatible(
                    f"stream '{origin.stream}': table '{table.name}' in {lake.path(table)} was set "
                    f"back by a RESTORE (version {restored}): rows of batch {metadata[by]} and "
                    f"perhaps of more are in it no longer. Restore version {restored - 1}, or "
                    f"start over on purpose: rivermark reset {origin.stream}"
                )
            return
        if commit.operation == RESTORE:
            restored = commit.version


def _lacks_files(path: str, version: int) -> bool:
    """Returns True if files that a commit added are no longer in the table."""
    store, log = filesystem(f"{path}/_delta_log")
    added = {a["add"]["path"] for a in read_entry(store, log, version) if "add" in a}
    return not added <= set(delta_table(path).get_add_actions()["path"].to_pylist())
