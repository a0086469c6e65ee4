"""The files of a table's log by version, as one listing shows them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from pyarrow import fs

from rivermark.lake.filesystem import filesystem, is_local

NAME: Final = re.compile(r"(\d{20})\.(json|crc|checkpoint(?:\..+)?\.(?:parquet|json))")
PART: Final = re.compile(r"(\d{20}\.checkpoint)\.(\d{10})\.(\d{10})\.parquet")
"""One file of a table checkpoint of several: its number, and how many there are."""
LAST_CHECKPOINT: Final = "_last_checkpoint"
"""The file that names the newest table checkpoint."""


@dataclass
class LogListing:
    """The files of a log by version: entries with their size, table checkpoints by name.

    `torn` has the parts that are missing of a checkpoint of several files: no reader uses one.
    """

    folder: str
    entries: dict[int, int | None] = field(default_factory=dict)
    sums: set[int] = field(default_factory=set)
    checkpoints: dict[int, list[str]] = field(default_factory=dict)
    torn: dict[int, list[str]] = field(default_factory=dict)

    @property
    def newest(self) -> int:
        """The newest version that has an entry; -1 without any."""
        return max(self.entries, default=-1)

    def start_for(self, version: int) -> int | None:
        """The newest table checkpoint at or before a version."""
        return max((v for v in self.checkpoints if v <= version), default=None)


def listing_of(table_path: str, first: int = 0) -> LogListing:
    """List a table's log from a version on; empty where there is none.

    On this machine's disk without sizes.
    """
    floor = f"{first:020d}"
    store, folder = filesystem(f"{table_path}/_delta_log")
    listing = LogListing(folder)
    for name, size in _names_on_disk(folder) if is_local(table_path) else _names(store, folder):
        # Compared as a text: the names of a log of a week are half a million.
        match = NAME.fullmatch(name) if name >= floor else None
        if match is None:
            continue
        version, kind = int(match[1]), match[2]
        if kind == "json":
            listing.entries[version] = size
        elif kind == "crc":
            listing.sums.add(version)
        else:
            listing.checkpoints.setdefault(version, []).append(name)
    for version, names in [*listing.checkpoints.items()]:
        lost = missing_parts(names)
        if lost and all(map(PART.fullmatch, names)):
            listing.torn[version] = lost
            del listing.checkpoints[version]
    return listing


def missing_parts(names: Iterable[str]) -> list[str]:
    """The names that are not there of the parts of a table checkpoint."""
    parts = [part for part in map(PART.fullmatch, names) if part is not None]
    present = {part[0] for part in parts}
    wanted = (
        f"{part[1]}.{number:010d}.{part[3]}.parquet"
        for part in parts
        for number in range(1, int(part[3]) + 1)
    )
    return [*dict.fromkeys(name for name in wanted if name not in present)]


def _names(store: fs.FileSystem, folder: str) -> list[tuple[str, int | None]]:
    files = store.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    return [(file.base_name, file.size) for file in files]


def _names_on_disk(folder: str) -> list[tuple[str, int | None]]:
    """Names alone: a log of a thousand files is not worth a thousand looks."""
    try:
        return [(name, None) for name in os.listdir(folder)]  # noqa: PTH208 - paths cost more
    except (FileNotFoundError, NotADirectoryError):
        return []
