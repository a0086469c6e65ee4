"""A Spark checkpoint and the failure of the power: Spark syncs none of its files.

`CheckpointSync` syncs what Spark wrote before a batch is committed that stands upon it. So after a
power failure only what followed the newest commits can be empty or cut: the batch that was planned,
the mark of the one that was finished, and its state. `drop_torn_batches` removes these, and the
query does the last batches again. By their number the tables recognise those that they hold.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Final

from rivermark.lake.durable import is_durable, sync
from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.integrity.sidecar import agrees, delete_with_sidecar
from rivermark.model.errors import CheckpointIncompatible
from rivermark.runtime.checkpoint.integrity import LOGS, entries, entry_problem

LOG: Final = logging.getLogger("rivermark")

WRITTEN_BACK: Final = 600.0
"""Seconds after which the kernel has long written back whatever was not synced."""
TICK: Final = 20_000_000
"""Nanoseconds within which a folder may change again under the same time of modification."""
SNAPSHOT: Final = frozenset({"snapshot", "zip"})
CHANGES: Final = frozenset({"delta", "changelog"})
STATE: Final = re.compile(r"(\d+)(?:_[0-9a-f-]+)?\.(\w+)")
"""Files of a state store, by the version that they lead to: that of batch n is n + 1."""


class CheckpointSync:
    """Syncs what is new in a checkpoint on this machine's disk.

    Not Hadoop's checksum files beside it: those that come back empty are removed.
    """

    def __init__(self, folder: str) -> None:
        self._root = filesystem(folder)[1] if is_local(folder) else None
        self._seen: dict[str, _Folder] = {}

    def sync(self) -> None:
        """Return when all that Spark has written of the checkpoint is on the disk."""
        if self._root is not None and is_durable():
            sync(self._new_below(self._root))

    def _new_below(self, folder: str) -> Iterator[str]:
        try:
            modified = os.stat(folder).st_mtime_ns  # noqa: PTH116 - once a batch and folder
        except FileNotFoundError:
            return
        before = self._seen.get(folder)
        if before is None or before.modified != modified:
            settled = time.time_ns() - modified > TICK
            now = self._seen[folder] = _Folder.of(folder, modified if settled else -1)
            if before is None:
                limit = time.time() - WRITTEN_BACK
                new = [n for n in now.names if _modified(f"{folder}/{n}") > limit]
            else:
                new = [n for n in now.names if n not in before.names]
            yield from (f"{folder}/{name}" for name in new)
            if new:
                yield folder
        for name in self._seen[folder].folders:
            yield from self._new_below(f"{folder}/{name}")


@dataclass(frozen=True)
class _Folder:
    """The content of a folder when it was last modified (nanoseconds)."""

    modified: int
    names: frozenset[str]
    folders: list[str]

    @classmethod
    def of(cls, folder: str, modified: int) -> _Folder:
        """Read a folder, without hidden names."""
        with os.scandir(folder) as entries:
            seen = [(e.name, e.is_dir()) for e in entries if not e.name.startswith(".")]
        names = frozenset(name for name, _ in seen)
        return cls(modified, names, [name for name, is_folder in seen if is_folder])


def drop_torn_batches(stream: str, folder: str, held: Callable[[], int | None]) -> int | None:
    """Remove the batches of a checkpoint from the first one on of which a file is empty or cut.

    `held` looks up the newest batch that a table holds. Call it only while no query uses the
    checkpoint. Returns the batch that the query will do next, None where nothing is torn.

    Raises:
        CheckpointIncompatible: where a table holds a batch whose plan is lost, as without syncing.
    """
    root = Path(filesystem(folder)[1])
    if not is_local(folder) or not root.is_dir():
        return None
    for sums in [p for p in root.rglob(".*.crc") if not p.stat().st_size]:
        sums.unlink()  # It tells nothing, and Hadoop may take it for a checksum that fails.
    # Spark goes back to an older snapshot and the changes since.
    _drop(path for _, path in _state_of(root, SNAPSHOT) if _is_torn_state(path))
    metadata = root / "metadata"
    plans, marks = ({n: root / log / str(n) for n in entries(root / log)} for log in LOGS)
    planned, finished = max(plans, default=-1), max(marks, default=-1)
    # Spark writes these again with the batch, unless they are there.
    _drop(_torn_schemas(root, finished))
    # Of older batches Spark reads nothing but the state that later ones build on.
    lost = {n: path for n, path in plans.items() if n >= planned - 1 and entry_problem(path)}
    torn = {n: path for n, path in marks.items() if n == finished and entry_problem(path)}
    for version, path in _state_of(root, CHANGES):
        if version > finished and _is_torn_state(path):
            torn.setdefault(version - 1, path)
    if metadata.exists() and not metadata.read_bytes().strip():
        lost[0] = metadata
    if not lost and not torn:
        return None
    again = min([*lost, *torn])
    # A plan that is whole is done again as it is.
    kept = again - 1 if again in lost else again
    first = lost.get(again) or torn[again]
    newest = held()
    if (newest is not None and newest > kept) or (kept >= 0 and kept not in plans):
        raise CheckpointIncompatible(
            f"stream '{stream}': {first} is empty or cut, as after a power failure, and its tables "
            f"hold batch {newest}: what was read for it is not known. Put the checkpoint back, or "
            f"start over: rivermark reset {stream} (new checkpoint, tables rebuilt from their "
            "inputs)."
        )
    _drop(path for n, path in plans.items() if n > kept)
    _drop(path for n, path in marks.items() if n >= again)
    _drop(path for version, path in _state_of(root) if version > again)
    if again == 0:
        rmtree(root / "state", ignore_errors=True)
    if lost.get(0) == metadata:
        _drop([metadata])
    LOG.warning(
        "stream '%s': %s is empty or cut, as after a power failure; from batch %d on all is done "
        "again, and nothing is written twice",
        *(stream, first, again),
    )
    return again


def _modified(path: str) -> float:
    try:
        return Path(path).stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _state_of(root: Path, kinds: frozenset[str] = SNAPSHOT | CHANGES) -> Iterator[tuple[int, Path]]:
    for path in [*(root / "state").rglob("*")]:
        match = STATE.fullmatch(path.name)
        if match is not None and match[2] in kinds:
            yield int(match[1]), path


def _torn_schemas(root: Path, finished: int) -> Iterator[Path]:
    """Entries of the state metadata that a batch which is not finished wrote, and cannot be read.

    Torn themselves, or one of the schemas that they name is.
    """
    for entry in [*root.glob("state/*/_metadata/v2/*")]:
        if not entry.name.isdigit() or int(entry.name) <= finished:
            continue
        schemas = entry.parents[2].glob(f"_stateSchema/*/{entry.name}_*")
        if any(_is_torn_state(path) for path in (entry, *schemas)):
            yield entry


def _is_torn_state(path: Path) -> bool:
    return not path.stat().st_size or agrees(path) is False


def _drop(paths: Iterable[Path]) -> None:
    for path in paths:
        delete_with_sidecar(path)
