"""Copies of tables and folders by hard links, on this machine's disk: no row is written again.

A data file and a log entry never change once they have their names, so a second name is a copy that
no vacuum, clean-up or removal of the first one reaches. Where a disk has no links, or the copy lies
on another one, contents are copied.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from rivermark.lake.delta import check_readable, delta_table
from rivermark.lake.durable import sync
from rivermark.lake.filesystem import filesystem
from rivermark.lake.integrity.sidecar import sidecar_of
from rivermark.lake.log import CommitLog
from rivermark.lake.maintenance.vacuum import ENTRY

WRITTEN_BACK: Final = 600.0
"""Seconds after which the kernel has long written back whatever was not synced."""
PARQUET: Final = re.compile(r"[^_.].*\.parquet")


def clone_table(source: str, target: str, version: int) -> None:
    """Make a table of another one, as it was at a version: its id, its history, its rows.

    Its next commit is the one behind that version, whatever the source has committed since. The
    caller holds the source's days lock, so that maintenance deletes nothing meanwhile. Raises
    TableDamaged, and DeltaProtocolError for what Spark alone can read.
    """
    opened = delta_table(source, version)
    check_readable(opened)
    names = map(unquote, opened.get_add_actions()["path"].to_pylist())
    place = Path(filesystem(source)[1])
    logged = [
        f"_delta_log/{name}"
        for name in os.listdir(place / "_delta_log")  # noqa: PTH208 - may be many
        if (entry := ENTRY.fullmatch(name)) and int(entry[1] or entry[4]) <= version
    ]
    copy_files(place, Path(filesystem(target)[1]), [*_with_sums(place, names), *sorted(logged)])


def clone_older_files(source: str, target: str, version: int) -> None:
    """Add the data files that older versions have, for readers of these in `target`.

    Files that the source has added behind that version are left out.
    """
    later = {unquote(each["add"]["path"]) for each in CommitLog(source).files_added(version + 1)}
    place, made = Path(filesystem(source)[1]), Path(filesystem(target)[1])
    names = (
        str(path.relative_to(place)) for path in place.rglob("*") if PARQUET.fullmatch(path.name)
    )
    older = (n for n in names if n not in later and "_delta_log" not in n)
    copy_files(place, made, _with_sums(place, (n for n in older if not (made / n).exists())))


def copy_files(source: Path, target: Path, names: Iterable[str], *, purged: bool = False) -> None:
    """Give the files of a folder the same names in another one; on the disk when it returns.

    With `purged` files that are deleted meanwhile are left out, else FileNotFoundError is raised.
    """
    folders: set[Path] = set()
    unsynced: list[Path] = []
    recent = time.time() - WRITTEN_BACK
    for name in names:
        made = target / name
        if made.parent not in folders:
            made.parent.mkdir(parents=True, exist_ok=True)
            folders |= {made.parent, *made.parent.parents[:3]}
        try:
            os.link(source / name, made)
        except FileExistsError:
            continue
        except FileNotFoundError:
            if purged:
                continue
            raise
        except OSError:
            shutil.copy2(source / name, made)
            unsynced.append(made)
            continue
        if made.stat().st_mtime > recent:
            unsynced.append(made)
    sync(unsynced)
    sync(folders)


def _with_sums(folder: Path, names: Iterable[str]) -> Iterator[str]:
    """Names of files, each with that of its checksums where there are any."""
    for name in names:
        yield name
        sums = sidecar_of(folder / name)
        if sums.exists():
            yield str(sums.relative_to(folder))
