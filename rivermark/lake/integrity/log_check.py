"""The log of a table checked before anything is read by it: no gap, no empty, cut or changed entry.

delta-rs and Delta's JVM take an empty entry for a commit without rows, and so would a stream that
reads on behind it: rows would be missing with nothing to tell it. Every road to a table passes here
(`rivermark.lake.delta`), and `rivermark fsck` lists by the same generator what an open refuses.

Where the log is not on this machine's disk only gaps and empty entries are looked for: an object
store shows a file whole or not at all, and each look costs a request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyarrow import fs

from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.integrity.known_files import is_known, remember, stamp_of
from rivermark.lake.integrity.log_entry import damaged, entry_path, sums_path
from rivermark.lake.integrity.log_files import (
    PART_MISSING,
    check_checkpoint_file,
    check_entry,
    read_sums,
)
from rivermark.lake.integrity.log_listing import (
    LAST_CHECKPOINT,
    LogListing,
    listing_of,
    missing_parts,
)
from rivermark.model.errors import TableDamaged

ATTEMPTS: Final = 3

OnFile = Callable[[int], None]
"""Takes the bytes of each file that was looked at."""


def passed(_: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class Damage:
    """A file of a log that is not as it was written, and in words what is wrong.

    `of` is the file that is useless by it: a table checkpoint, where one of its parts is damaged.
    """

    path: str
    problem: str
    of: str

    def error(self) -> TableDamaged:
        """The refusal of an open."""
        return damaged(self.path, self.problem)


def check_log(table_path: str, version: int | None = None) -> int:
    """Check what is read of a log for a version (default: the newest); returns the newest.

    Raises TableDamaged, naming the file. A table or version that is not there is left to
    the reader that opens it.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return _check_listed(table_path, version)
        except FileNotFoundError:
            pass  # Maintenance took it away behind the listing.
        except TableDamaged as damage:
            if "missing" not in damage.problem:
                raise
            # A listing is no snapshot: it may show a new entry and not the one before.
    return _check_listed(table_path, version)


def _check_listed(table_path: str, version: int | None) -> int:
    first = _hinted(table_path) if version is None and is_local(table_path) else 0
    listing = listing_of(table_path, first)
    if first and (listing.newest < first or listing.start_for(listing.newest) is None):
        listing = listing_of(table_path)
    newest = listing.newest
    if newest < 0:
        return newest
    local = is_local(table_path)
    if version is None:
        for damage in damage_to_end(listing):
            raise damage.error()
    last = newest if version is None else min(version, newest)
    start = listing.start_for(last)
    if start is None and 0 not in listing.entries and version is not None:
        return newest
    for damage in damage_to_begin(listing, last):
        raise damage.error()
    if local:
        for damage in damage_to_hint(listing):
            # One that cannot be read is passed over by every reader, which then lists the log.
            if damage.problem != UNREADABLE:
                raise damage.error()
    for name in listing.checkpoints.get(start, []) if local and start is not None else []:
        for damage in damage_to_checkpoint(listing, name):
            raise damage.error()
    for damage in damage_to_entries(listing, start or 0, last, local=local):
        raise damage.error()
    if local:
        _leave_whole_sums(listing, last)
    return newest


def _hinted(table_path: str) -> int:
    """The version of the table checkpoint that readers begin with; 0 without one they can read."""
    _, folder = filesystem(f"{table_path}/_delta_log")
    try:
        return max(0, int(json.loads(Path(folder, LAST_CHECKPOINT).read_bytes())["version"]))
    except (OSError, ValueError, TypeError, KeyError):
        return 0


def damage_to_end(listing: LogListing) -> Iterator[Damage]:
    """The newest entry, where it is missing beside its checksum file."""
    version = max(listing.sums, default=-1)
    if version > listing.newest:
        path = entry_path(listing.folder, version)
        yield Damage(
            path, f"is missing, though {sums_path(listing.folder, version)} is there", path
        )


def damage_to_begin(listing: LogListing, last: int) -> Iterator[Damage]:
    """The beginning of a log, where neither the first entry nor a table checkpoint is there."""
    oldest = min(listing.entries)
    if oldest > 0 and listing.start_for(last) is None:
        yield from damage_to_parts(listing, oldest)
        path = entry_path(listing.folder, oldest - 1)
        problem = (
            f"is missing: the log begins at version {oldest} and no table checkpoint begins it"
        )
        yield Damage(path, problem, path)


def damage_to_parts(listing: LogListing, version: int) -> Iterator[Damage]:
    """The missing part of the checkpoint that would stand for a version."""
    torn = min((v for v in listing.torn if v >= version), default=None)
    if torn is not None:
        path = f"{listing.folder}/{listing.torn[torn][0]}"
        yield Damage(path, PART_MISSING, path)


def damage_to_hint(listing: LogListing) -> Iterator[Damage]:
    """A `_last_checkpoint` that names none that is there: delta-rs reads nothing then."""
    path = f"{listing.folder}/{LAST_CHECKPOINT}"
    try:
        hinted = int(json.loads(Path(path).read_bytes())["version"])
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError):
        yield Damage(path, UNREADABLE, path)
        return
    # One that was made behind the listing is looked for; a log of years is not listed again.
    if hinted in listing.checkpoints:
        return
    names = [file.name for file in Path(listing.folder).glob(f"{hinted:020d}.checkpoint*")]
    lost = missing_parts(names)
    if not names or lost:
        named = (lost or [f"{hinted:020d}.checkpoint.parquet"])[0]
        yield Damage(path, f"names {listing.folder}/{named}, which is missing", path)


def damage_to_checkpoint(listing: LogListing, name: str, *, drop: bool = True) -> Iterator[Damage]:
    """A file of a table checkpoint, or a part that it needs. Raises FileNotFoundError."""
    path = Path(listing.folder, name)
    try:
        check_checkpoint_file(path, drop=drop)
    except TableDamaged as damage:
        yield Damage(damage.path, damage.problem, str(path))


def damage_to_entries(
    listing: LogListing,
    first: int,
    last: int,
    *,
    local: bool,
    drop: bool = True,
    on_file: OnFile = passed,
) -> Iterator[Damage]:
    """The entries of versions that are missing, empty, cut or changed."""
    start = listing.start_for(last)
    for version in range(first, last + 1):
        path = entry_path(listing.folder, version)
        try:
            if listing.entries.get(version, -1) == 0:
                yield Damage(path, "is empty", path)
                continue
            if version in listing.entries:
                if local:
                    check_entry(listing.folder, version, drop=drop)
                    on_file(Path(path).stat().st_size)
                continue
        except TableDamaged as damage:
            yield Damage(path, damage.problem, path)
            continue
        except FileNotFoundError:
            pass  # Maintenance took it away behind the listing.
        if version == start:
            continue  # The checkpoint stands for it.
        yield from damage_to_parts(listing, version)
        yield Damage(path, f"is missing, and versions up to {listing.newest} follow it", path)


UNREADABLE: Final = "is damaged"
"""Said of a file that is only a help to readers, and that tells nothing."""


def _leave_whole_sums(listing: LogListing, last: int) -> None:
    """Leave delta-rs a checksum file that is whole: it reads the newest one up to a version."""
    for version in sorted((v for v in listing.sums if v <= last), reverse=True):
        path = Path(sums_path(listing.folder, version))
        try:
            if is_known(path):
                return
            stamp = stamp_of(path)
        except FileNotFoundError:
            continue
        if read_sums(listing.folder, version) is not None:
            remember(path, stamp)
            return


def check_newer(table_path: str, version: int) -> int:
    """Check the entries that follow a version which was checked; returns the newest."""
    store, folder = filesystem(f"{table_path}/_delta_log")
    local = is_local(table_path)
    while True:
        path = entry_path(folder, version + 1)
        if local:
            try:
                check_entry(folder, version + 1)
            except FileNotFoundError:
                return version
        else:
            info: fs.FileInfo = store.get_file_info(path)
            if info.type != fs.FileType.File:
                return version
            if info.size == 0:
                raise damaged(path, "is empty")
        version += 1
