"""One file of a table's log on this machine's disk: whole as it was written, or named as damaged.

A file that was checked is not read again by the process while its size and time stay.
"""

from __future__ import annotations

import logging
import zlib
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rivermark.lake.integrity.known_files import is_known, keep_newest, remember, stamp_of
from rivermark.lake.integrity.log_entry import (
    Actions,
    actions_in,
    complete,
    damaged,
    entry_path,
    sums_path,
)
from rivermark.lake.integrity.log_listing import PART
from rivermark.lake.integrity.sidecar import agrees, delete_with_sidecar, sidecar_of
from rivermark.lake.integrity.version_sums import Checksum, entry_agrees, sums_in

LOG = logging.getLogger("rivermark")

PARQUET: Final = b"PAR1"
PART_MISSING: Final = "is missing, and is a part of a table checkpoint"


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
    """Checks that a table checkpoint holds the files that its version's checksum file counts."""
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


def _check_sums(folder: str, version: int, actions: Actions, sums: Checksum, *, drop: bool) -> None:
    """Checks that an entry brings as many files as the checksums before and after it say, at least.

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
    """Checks that an entry is no copy of an earlier one: a stream would read its files twice."""
    seen = _CONTENTS.setdefault(str(path.parent), {})
    earlier = seen.setdefault(content, version)
    keep_newest(seen)
    if earlier != version and Path(entry_path(str(path.parent), earlier)).exists():
        raise damaged(str(path), f"is a copy of the entry of version {earlier}")


_CONTENTS: Final[dict[str, dict[int, int]]] = {}
"""By log folder: which version has an entry with that CRC-32."""
