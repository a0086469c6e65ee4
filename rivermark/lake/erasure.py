"""Rows taken out of a table for good: new files without them, and no older file that holds them.

Not by a condition of delta-rs: each commit of it says the condition in the log, with the values
that are to be forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from rivermark.lake.append.data_file import Tree, removal
from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.append.table_files import files_of
from rivermark.lake.checkpoint import make_checkpoint
from rivermark.lake.delta import check_readable, delta_table, file_batches
from rivermark.lake.durable import sync
from rivermark.lake.filesystem import filesystem
from rivermark.lake.integrity.log_entry import read_entry
from rivermark.lake.integrity.sidecar import delete_with_sidecar
from rivermark.lake.locks import commit_lock
from rivermark.lake.log import CommitLog
from rivermark.lake.retention import keep_from
from rivermark.model.errors import RivermarkError, TableDamaged

Match = Callable[[pa.Table], pa.Array]
"""Of each row, whether it is to go; given those of the columns asked for that its file has."""
TRIES: Final = 8


@dataclass
class Held:
    """The rows of a table that are to go: of its files as it is, and the older files with some."""

    version: int
    live: dict[str, int] = field(default_factory=dict)
    old: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Rows of the newest version."""
        return sum(self.live.values())


def rows_held(
    path: str,
    columns: list[str],
    match: Match,
    on_rows: Callable[[pa.Table], None] = lambda _: None,
) -> Held:
    """Look for rows in every data file of a table, also in those of older versions.

    `on_rows` gets the rows that were found, a few at a time. Older files that cannot be read are
    those of a killed writer, and count as holding some. Raises RivermarkError for a table whose
    files do not say its rows, TableDamaged for a live file that cannot be read.
    """
    table = opened(path)
    live = {unquote(name) for name in table.get_add_actions()["path"].to_pylist()}
    held = Held(table.version())
    for name in sorted(_data_files(Path(path)) | live):
        try:
            count = 0
            for rows in _matching(path, name, columns, match):
                count += rows.num_rows
                on_rows(rows)
        except TableDamaged:
            if name in live:
                raise
            held.old.append(name)
            continue
        if count and name in live:
            held.live[name] = count
        elif count:
            held.old.append(name)
    return held


def opened(path: str) -> DeltaTable:
    """The newest version of a table from which rows can be erased; RivermarkError for another."""
    table = delta_table(path)
    check_readable(table)
    if files_of(table) is None:
        raise RivermarkError(
            f"the table {path} has partitions, constraints or features that another tool gave it: "
            "erase its rows with that tool, then its older versions"
        )
    return table


def erase_rows(
    path: str, held: Held, columns: list[str], match: Match, metadata: dict[str, str]
) -> int:
    """Replace the files that hold such rows by files without them, in one commit that streams skip.

    Returns the number of rows. Afterwards they are in older versions alone (`erase_versions`).
    """
    for _ in range(TRIES if held.live else 0):
        with commit_lock(path, synced=True):
            table, committer = opened(path), DeltaCommitter(path)
            if table.version() != held.version:
                held.live = rows_held(path, columns, match).live
            sizes = _sizes(table)
            removes: list[Tree] = []
            adds: list[Tree] = []
            for name in held.live:
                removes.append(removal(*sizes[name], data_change=True))
                adds += _without(committer, path, name, match)
            version = table.version()
            if committer.replace_files(version, removes, adds, metadata):
                held.old += held.live
                return held.rows
            held.version = version
    if held.live:
        raise RivermarkError(
            f"the table {path}: other writers committed to it {TRIES} times while rows were taken "
            "out; nothing of it was changed. Stop them, and do it again"
        )
    return 0


def erase_versions(path: str, held: Held) -> None:
    """Delete the older files that hold such rows; versions are kept from now on.

    A table checkpoint stands for the log from here on, so that its older entries can go.
    """
    if not held.old:
        return
    # In this order: the log is cut at the checkpoint of the oldest version that is kept.
    log = CommitLog(path)
    if log.versions()[-1] not in log.checkpoints():
        make_checkpoint(path)
    keep_from(path, datetime.now(UTC))
    for name in held.old:
        delete_with_sidecar(Path(path, name))
    sync([path])


def in_log(path: str, values: Mapping[str, Collection[str]]) -> bool:
    """True if an entry of a table's log still has one of the values as a bound of its column."""
    store, folder = filesystem(f"{path}/_delta_log")
    for version in CommitLog(path).versions():
        for add in (a["add"] for a in read_entry(store, folder, version) if "add" in a):
            stats = json.loads(add.get("stats") or "{}")
            for bounds in (stats.get("minValues", {}), stats.get("maxValues", {})):
                if any(str(bounds.get(name)) in texts for name, texts in values.items()):
                    return True
    return False


def _data_files(folder: Path) -> set[str]:
    """The data files of a table's folder; those in folders of `_` or `.` are no data."""
    names = (path.relative_to(folder) for path in folder.rglob("*.parquet"))
    return {str(n) for n in names if not any(part[0] in "_." for part in n.parts)}


def _matching(path: str, name: str, columns: list[str], match: Match) -> Iterator[pa.Table]:
    for batch in file_batches(path, name, columns):
        rows = pa.Table.from_batches([batch])
        chosen = rows.filter(match(rows))
        if chosen.num_rows:
            yield chosen


def _without(committer: DeltaCommitter, path: str, name: str, match: Match) -> list[Tree]:
    files = committer.files()
    if files is None:
        raise RivermarkError(f"the table {path} was given features meanwhile; do it again")
    kept = files.read(name, lambda rows: rows.filter(pc.invert(match(rows))))
    return files.write(kept)


def _sizes(table: DeltaTable) -> dict[str, tuple[str, int]]:
    """By the file, its name as the log spells it, and its bytes."""
    added = pa.table(table.get_add_actions())
    pairs = zip(added["path"].to_pylist(), added["size_bytes"].to_pylist(), strict=True)
    return {unquote(name): (name, size) for name, size in pairs}
