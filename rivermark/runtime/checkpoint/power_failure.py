"""A Spark checkpoint and the failure of the power: Spark syncs none of its files.

`CheckpointSync` syncs what Spark wrote before a batch is committed that stands upon it. So after a
power failure only what followed the newest commits can be empty or cut: the batch that was planned,
the mark of the one that was finished, and its state. `drop_torn_batches` removes these, and the
query does the last batches again. By their number the tables recognise those that they hold.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from shutil import rmtree
from typing import Final

from rivermark.lake.durable import is_durable, sync
from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.integrity.sidecar import agrees, sidecar_of
from rivermark.model.errors import CheckpointIncompatible

LOG: Final = logging.getLogger("rivermark")

WRITTEN_BACK: Final = 600.0
"""Seconds after which the kernel has long written back whatever was not synced."""
SNAPSHOT: Final = frozenset({"snapshot", "zip"})
CHANGES: Final = frozenset({"delta", "changelog"})
STATE: Final = re.compile(r"(\d+)(?:_[0-9a-f-]+)?\.(\w+)")
"""Files of a state store, by the version that they lead to: that of batch n is n + 1."""


class CheckpointSync:
    """Syncs what is new in a checkpoint on this machine's disk."""

    def __init__(self, folder: str) -> None:
        self._root = Path(filesystem(folder)[1]) if is_local(folder) else None
        self._seen: dict[str, set[str]] = {}

    def sync(self) -> None:
        """Return when all that Spark has written of the checkpoint is on the disk."""
        if self._root is not None and is_durable():
            sync([path for folder in _folders(self._root) for path in self._new_in(folder)])

    def _new_in(self, folder: str) -> list[str]:
        names = {entry.name for entry in os.scandir(folder)}
        before = self._seen.get(folder)
        self._seen[folder] = names
        if before is None:
            limit = time.time() - WRITTEN_BACK
            new = {n for n in names if _modified(f"{folder}/{n}") > limit}
        else:
            new = names - before
        return [*(f"{folder}/{name}" for name in new), folder] if new else []


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
    # Spark goes back to an older snapshot and the changes since.
    _drop(path for _, path in _state_of(root, SNAPSHOT) if _is_torn_state(path))
    metadata = root / "metadata"
    plans, marks = (dict(_numbered(root / log)) for log in ("offsets", "commits"))
    planned, finished = max(plans, default=-1), max(marks, default=-1)
    # Of older batches Spark reads nothing but the state that later ones build on.
    lost = {n: path for n, path in plans.items() if n >= planned - 1 and _is_torn(path)}
    torn = {n: path for n, path in marks.items() if n == finished and _is_torn(path)}
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


def _folders(root: Path) -> Iterator[str]:
    for folder, _, _ in os.walk(root):
        yield folder


def _modified(path: str) -> float:
    try:
        return Path(path).stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _numbered(folder: Path) -> Iterator[tuple[int, Path]]:
    for path in folder.glob("*"):
        if path.name.isdigit():
            yield int(path.name), path


def _state_of(root: Path, kinds: frozenset[str] = SNAPSHOT | CHANGES) -> Iterator[tuple[int, Path]]:
    for path in [*(root / "state").rglob("*")]:
        match = STATE.fullmatch(path.name)
        if match is not None and match[2] in kinds:
            yield int(match[1]), path


def _is_torn(path: Path) -> bool:
    """Whether a plan or a mark is not whole: a version, then lines of JSON, or `-` for none."""
    content = path.read_bytes()
    if agrees(path, content) is False:
        return True
    version, *lines = content.split(b"\n")
    if not version.startswith(b"v") or not lines:
        return True
    try:
        for line in lines:
            if line not in (b"", b"-"):
                json.loads(line)
    except ValueError:
        return True
    return False


def _is_torn_state(path: Path) -> bool:
    return not path.stat().st_size or agrees(path) is False


def _drop(paths: Iterable[Path]) -> None:
    for path in paths:
        sidecar_of(path).unlink(missing_ok=True)
        path.unlink(missing_ok=True)
