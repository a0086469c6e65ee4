"""Table checkpoints that are there whole or not at all.

delta-rs writes one under its name and then the hint that points to it, and syncs neither: after a
power failure both may be empty, and the table cannot be read. So it is made beside the table, from
links to the log, and gets its name when it is on the disk.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from deltalake import DeltaTable

from rivermark.lake.delta import delta_table
from rivermark.lake.durable import sync
from rivermark.lake.filesystem import filesystem, is_local, put_file
from rivermark.lake.integrity.log_check import check_log
from rivermark.lake.integrity.log_listing import LAST_CHECKPOINT, listing_of
from rivermark.lake.integrity.sidecar import sidecar_of, write_sidecar
from rivermark.lake.locks import sync_checkpoint

SHADOW: Final = "_checkpoint."
"""Beginning of the folder's name; readers of the table and its maintenance pass over it."""
LEFT_OVER: Final = 3600.0
"""Seconds after which such a folder is one of a killed process."""


def make_checkpoint(table_path: str) -> None:
    """Make a table checkpoint of the newest version."""
    store, folder = filesystem(table_path)
    if not is_local(table_path):
        delta_table(table_path).create_checkpoint()
        return
    check_log(table_path)
    for old in Path(folder).glob(f"{SHADOW}*"):
        if time.time() - old.stat().st_mtime > LEFT_OVER:
            shutil.rmtree(old, ignore_errors=True)
    shadow = Path(mkdtemp(prefix=SHADOW, dir=folder))
    try:
        linked = _link_log(table_path, shadow / "_delta_log")
        if linked is None:
            DeltaTable(table_path).create_checkpoint()
            sum_up_checkpoint(table_path, check_log(table_path))
            sync_checkpoint(listing_of(table_path))
            return
        DeltaTable(str(shadow)).create_checkpoint()
        made = [p for p in (shadow / "_delta_log").iterdir() if p.name not in linked]
        hint = next(path for path in made if path.name == LAST_CHECKPOINT)
        made.remove(hint)
        for path in [*made]:
            write_sidecar(path)
            made.append(sidecar_of(path))
        sync(made)
        for path in made:
            path.replace(Path(folder, "_delta_log", path.name))
        put_file(store, f"{folder}/_delta_log/{LAST_CHECKPOINT}", hint.read_bytes())
    finally:
        shutil.rmtree(shadow, ignore_errors=True)


def sum_up_checkpoint(path: str, version: int) -> None:
    """Write the checksum file of a version's table checkpoint, where there is one without.

    delta-rs writes none, and a changed byte in a table checkpoint may be other statistics, by which
    readers skip rows.
    """
    if not is_local(path):
        return
    folder = filesystem(f"{path}/_delta_log")[1]
    checkpoint = Path(folder, f"{version:020d}.checkpoint.parquet")
    if checkpoint.exists() and not sidecar_of(checkpoint).exists():
        write_sidecar(checkpoint)


def _link_log(table_path: str, target: Path) -> set[str] | None:
    """Link what the newest version follows from; None on a disk without links."""
    target.mkdir()
    listing = listing_of(table_path)
    start = listing.start_for(listing.newest)
    names = [f"{v:020d}.json" for v in listing.entries if start is None or v >= start]
    names += [] if start is None else listing.checkpoints[start]
    for name in names:
        try:
            os.link(Path(listing.folder, name), target / name)
        except OSError:
            return None
    return set(names)
