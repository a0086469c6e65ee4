"""The log of a table checked before anything is read by it: no gap, no empty, cut or changed entry.

delta-rs and Delta's JVM take an empty entry for a commit without rows, and so would a stream that
reads on behind it: rows would be missing with nothing to tell it. Every road to a table passes here
(`rivermark.lake.delta`). A file that was checked is not read again by the process while its size
and time stay.

Where the log is not on this machine's disk only gaps and empty entries are looked for: an object
store shows a file whole or not at all, and each look costs a request.
"""

from __future__ import annotations

import json
import logging
import os
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.integrity.known_files import is_known, keep_newest, remember, stamp_of
from rivermark.lake.integrity.log_entry import (
    Actions,
    actions_in,
    complete,
    damaged,
    entry_path,
    sums_path,
)
from rivermark.lake.integrity.sidecar import agrees, delete_with_sidecar, sidecar_of
from rivermark.lake.integrity.version_sums import Checksum, entry_agrees, sums_in
from rivermark.model.errors import TableDamaged

LOG = logging.getLogger("rivermark")

NAME: Final = re.compile(r"(\d{20})\.(json|crc|checkpoint(?:\..+)?\.(?:parquet|json))")
PART: Final = re.compile(r"(\d{20}\.checkpoint)\.(\d{10})\.(\d{10})\.parquet")
"""One file of a table checkpoint of several: its number, and how many there are."""
PARQUET: Final = b"PAR1"
ATTEMPTS: Final = 3
LAST_CHECKPOINT: Final = "_last_checkpoint"
PART_MISSING: Final = "is missing, and is a part of a table checkpoint"
UNREADABLE: Final = "is damaged"
"""Said of a `_last_checkpoint` that names no version."""


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


def listing_of(table_path: str) -> LogListing:
    """List a table's log; empty where there is none. On this machine's disk without sizes."""
    store, folder = filesystem(f"{table_path}/_delta_log")
    listing = LogListing(folder)
    for name, size in _names_on_disk(folder) if is_local(table_path) else _names(store, folder):
        match = NAME.fullmatch(name)
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
    listing = listing_of(table_path)
    newest = listing.newest
    if newest < 0:
        return newest
    last = newest if version is None else min(version, newest)
    lost = lost_entry(listing)
    if lost is not None and version is None:
        raise damaged(*lost)
    start = listing.start_for(last)
    first = 0 if start is None else start
    if start is None and 0 not in listing.entries:
        if version is not None:
            return newest
        oldest = min(listing.entries)
        _check_parts(listing, oldest)
        raise damaged(
            entry_path(listing.folder, oldest - 1),
            f"is missing: the log begins at version {oldest} and no table checkpoint begins it",
        )
    local = is_local(table_path)
    if local:
        _check_hint(listing)
        for name in [] if start is None else listing.checkpoints[start]:
            check_checkpoint_file(Path(listing.folder, name))
    for each in range(first, last + 1):
        if each not in listing.entries:
            if each == start:
                continue  # The checkpoint stands for it.
            _check_parts(listing, each)
            raise damaged(
                entry_path(listing.folder, each),
                f"is missing, and versions up to {newest} follow it",
            )
        if listing.entries[each] == 0:
            raise damaged(entry_path(listing.folder, each), "is empty")
        if local:
            check_entry(listing.folder, each)
    if local:
        _check_newest_sums(listing, last)
    return newest


def _check_parts(listing: LogListing, version: int) -> None:
    """Whether a checkpoint that would stand for a version lacks a part."""
    torn = min((v for v in listing.torn if v >= version), default=None)
    if torn is not None:
        raise damaged(f"{listing.folder}/{listing.torn[torn][0]}", PART_MISSING)


def _check_newest_sums(listing: LogListing, last: int) -> None:
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


def lost_entry(listing: LogListing) -> tuple[str, str] | None:
    """The newest entry, where it is missing beside its checksum file; and in words."""
    version = max(listing.sums, default=-1)
    if version <= listing.newest:
        return None
    sums = sums_path(listing.folder, version)
    return entry_path(listing.folder, version), f"is missing, though {sums} is there"


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


def check_entry(folder: str, version: int, *, drop: bool = True) -> None:
    """Check one entry on this machine's disk, by itself and by the checksums beside it.

    With `drop` checksum files that are damaged are deleted.
    """
    path = Path(entry_path(folder, version))
    if is_known(path):
        return
    stamp = stamp_of(path)
    content = path.read_bytes()
    actions = actions_in(str(path), content)
    if agrees(path, content) is False:
        raise damaged(str(path), f"does not agree with its checksum file {sidecar_of(path)}")
    sums = read_sums(folder, version, drop=drop)
    if sums is not None:
        agreed = entry_agrees(sums, content)
        if agreed is False:
            raise damaged(str(path), f"is not what {version:020d}.crc was made for: it was changed")
        if agreed is None:
            _check_sums(folder, version, actions, sums, drop=drop)
    if any("add" in action for action in actions):
        _check_repeated(path, zlib.crc32(content), version)
    remember(path, stamp)


def read_sums(folder: str, version: int, *, drop: bool = True) -> Checksum | None:
    """The checksum file of a version; None without one, or with one that is damaged."""
    path = Path(sums_path(folder, version))
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    sums = sums_in(content, version)
    if sums is None or agrees(path, content) is False:
        drop_damaged_sums(path, drop=drop)
        return None
    return sums


def drop_damaged_sums(path: Path, *, drop: bool) -> None:
    """Delete a checksum file that is damaged: delta-rs takes the table's columns from it.

    It is only a help to readers, and the next commit writes another one.
    """
    if not drop:
        return
    LOG.warning("%s is damaged, and is deleted: it is only a help, and written again", path)
    delete_with_sidecar(path)


def check_checkpoint_file(path: Path, *, drop: bool = True) -> None:
    """Check a table checkpoint: by its checksum file, else by that of its version.

    With those files of a v2 checkpoint that hold the adds.
    """
    if is_known(path):
        return
    stamp = stamp_of(path)
    content = path.read_bytes()
    agreed = _check_whole(path, content)
    if path.name == f"{path.name[:20]}.checkpoint.parquet":
        if agreed is None:
            _check_state(path, drop=drop)
    elif PART.fullmatch(path.name) is None:
        for part in _parts_of(path, content):
            try:
                _check_whole(part, part.read_bytes())
            except FileNotFoundError:
                raise damaged(str(part), PART_MISSING) from None
    remember(path, stamp)


def _check_whole(path: Path, content: bytes) -> bool | None:
    """Raise TableDamaged for a file that is cut or changed; None where only its end is known."""
    ends = (content[:4], content[-4:]) == (PARQUET, PARQUET)
    if not content or (path.suffix == ".parquet" and not ends):
        raise damaged(str(path), "is no whole Parquet file" if content else "is empty")
    agreed = agrees(path, content)
    if agreed is False:
        raise damaged(str(path), f"does not agree with its checksum file {sidecar_of(path)}")
    return agreed


def _parts_of(path: Path, content: bytes) -> list[Path]:
    """The files that a v2 checkpoint names for its adds."""
    try:
        if path.suffix == ".json":
            actions = actions_in(str(path), content)
            names = [action["sidecar"]["path"] for action in actions if "sidecar" in action]
        else:
            with pq.ParquetFile(pa.BufferReader(content)) as file:
                named = file.read(columns=["sidecar.path"], use_threads=False)
            sidecars = named.column("sidecar").drop_null() if named.num_columns else []
            names = pc.struct_field(sidecars, "path").to_pylist() if len(sidecars) else []
    except (OSError, KeyError, pa.ArrowException) as error:
        raise damaged(str(path), f"cannot be read ({error})") from error
    return [path.parent / "_sidecars" / name.rsplit("/", 1)[-1] for name in names if name]


def _check_state(path: Path, *, drop: bool) -> None:
    """Whether a table checkpoint holds the files that the checksum file of its version counts."""
    try:
        with pq.ParquetFile(path) as file:
            adds = file.read(columns=["add.path", "add.size"], use_threads=False)["add"]
        sizes = pc.struct_field(adds.drop_null(), "size")
        state = (len(sizes), pc.sum(sizes).as_py() or 0)
    except (OSError, KeyError, pa.ArrowException) as error:
        raise damaged(str(path), f"cannot be read ({error})") from error
    sums = read_sums(str(path.parent), int(path.name[:20]), drop=drop)
    if sums is not None and state != (sums["numFiles"], sums["tableSizeBytes"]):
        raise damaged(
            str(path),
            f"holds {state[0]} files of {state[1]} bytes, {path.name[:20]}.crc counts "
            f"{sums['numFiles']} of {sums['tableSizeBytes']}",
        )


def _check_hint(listing: LogListing) -> None:
    """Whether `_last_checkpoint` names one that is there: delta-rs reads nothing otherwise.

    One that cannot be read is passed over by every reader, which then lists the log.
    """
    problem = hint_problem(listing)
    if problem not in (None, UNREADABLE):
        raise damaged(f"{listing.folder}/{LAST_CHECKPOINT}", problem)


def hint_problem(listing: LogListing) -> str | None:
    """What is wrong with a log's `_last_checkpoint`; None without one."""
    folder = listing.folder
    try:
        hinted = int(json.loads(Path(folder, LAST_CHECKPOINT).read_bytes())["version"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        return UNREADABLE
    # One that was made behind the listing is looked for; a log of years is not listed again.
    if hinted in listing.checkpoints:
        return None
    names = [path.name for path in Path(folder).glob(f"{hinted:020d}.checkpoint*")]
    lost = missing_parts(names)
    if names and not lost:
        return None
    return f"names {folder}/{(lost or [f'{hinted:020d}.checkpoint.parquet'])[0]}, which is missing"


def _check_sums(folder: str, version: int, actions: Actions, sums: Checksum, *, drop: bool) -> None:
    """Whether an entry brings as many files as the checksums before and after it say, at least.

    One that counts its files itself, and has them, is believed more than the checksum file.
    """
    before = {"numFiles": 0} if version == 0 else read_sums(folder, version - 1, drop=drop)
    if before is None:
        return
    adds = sum("add" in action for action in actions)
    removes = sum("remove" in action for action in actions)
    after = before["numFiles"] + adds - removes
    if after < sums["numFiles"] and complete(actions):
        drop_damaged_sums(Path(sums_path(folder, version)), drop=drop)
    elif after < sums["numFiles"]:
        raise damaged(
            entry_path(folder, version),
            f"leaves {after} files where {version:020d}.crc counts {sums['numFiles']}",
        )


def _check_repeated(path: Path, content: int, version: int) -> None:
    """Whether an entry is a copy of an earlier one: a stream would read its files twice."""
    seen = _CONTENTS.setdefault(str(path.parent), {})
    earlier = seen.setdefault(content, version)
    keep_newest(seen)
    if earlier != version and Path(entry_path(str(path.parent), earlier)).exists():
        raise damaged(str(path), f"is a copy of the entry of version {earlier}")


_CONTENTS: Final[dict[str, dict[int, int]]] = {}
"""By log folder: which version has an entry with that CRC-32."""
