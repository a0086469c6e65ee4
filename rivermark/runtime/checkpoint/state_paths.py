"""Places of state schemas that a checkpoint names, corrected after the lake has moved.

Beside the state of a process function Spark keeps `state/<operator>/_metadata/v2/<batch>`, which
names files of `state/<operator>/_stateSchema/` by their whole paths. In a lake that was copied it
would look for them at the old place: not find them, or read and purge those of the other lake.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyarrow import fs

from rivermark.lake.durable import sync
from rivermark.lake.filesystem import filesystem, is_local, put_file
from rivermark.lake.integrity.fault import Fault
from rivermark.lake.integrity.sidecar import sidecar_of
from rivermark.model.errors import CheckpointIncompatible
from rivermark.runtime.checkpoint.integrity import put_back

LOG: Final = logging.getLogger("rivermark")
METADATA: Final = "_metadata/v2"
SCHEMAS: Final = "/_stateSchema/"
NAMES: Final = "stateSchemaFilePaths"


@dataclass(frozen=True)
class StateMetadata:
    """An entry of an operator's state metadata: its path, and the schemas that it names.

    `schemas` are their places within this checkpoint, `stale` is the first path that leads to
    another one, and `corrected` the entry with all of them in this one.
    """

    path: str
    schemas: list[str]
    stale: str | None
    corrected: bytes


def state_metadata(checkpoint: str, stream: str) -> Iterator[StateMetadata]:
    """Every entry of the state metadata of a checkpoint; none where no operator has any.

    Raises:
        CheckpointIncompatible: with the file, where one is damaged.
    """
    store, folder = filesystem(checkpoint)
    root = f"file:{folder}" if is_local(checkpoint) else checkpoint
    for operator in _names(store, f"{folder}/state"):
        entries = f"{folder}/state/{operator}/{METADATA}"
        for batch in _names(store, entries):
            path = f"{entries}/{batch}"
            with store.open_input_stream(path) as file:
                content = file.read()
            try:
                yield _entry(path, content, f"{root}/state/{operator}{SCHEMAS}")
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise CheckpointIncompatible(
                    f"stream '{stream}': {path} is damaged ({error}). {put_back(stream)}"
                ) from error


def correct_state_paths(checkpoint: str, stream: str) -> None:
    """Let the state metadata name the files of this checkpoint, where the lake has moved.

    A kill leaves each entry as it was or corrected. Safe beside a query that runs: its entries need
    no correction.

    Raises:
        CheckpointIncompatible: with the file, where one is damaged.
    """
    store, _ = filesystem(checkpoint)
    for entry in state_metadata(checkpoint, stream):
        if entry.stale is None:
            continue
        if is_local(checkpoint):
            # Before the entry is another one: Hadoop refuses a file that does not agree with it.
            sums = sidecar_of(Path(entry.path))
            sums.unlink(missing_ok=True)
            sync([sums.parent])
        # Spark takes every name in the entry's own folder for a batch.
        put_file(store, entry.path, entry.corrected, drafts=entry.path.rsplit("/", 2)[0])
        LOG.info(
            "stream '%s': %s named %s, and names %s now: the lake has moved",
            *(stream, entry.path, entry.stale, entry.schemas[0]),
        )


def faults_of_state_paths(checkpoint: str, stream: str) -> Iterator[Fault]:
    """Faults of the state metadata of a checkpoint on this machine's disk."""
    try:
        for entry in state_metadata(checkpoint, stream):
            for schema in entry.schemas:
                if not Path(_local(schema)).exists():
                    problem = f"is missing, though {entry.path} names it"
                    yield Fault(_local(schema), problem, put_back(stream))
            if entry.stale is not None:
                yield Fault(
                    entry.path,
                    f"names {entry.stale}: the lake has moved since it was written",
                    "The next start of the stream corrects it.",
                    "correct paths",
                    note=True,
                )
    except CheckpointIncompatible as error:
        yield Fault(f"{_local(checkpoint)}/state", str(error), "")


def _entry(path: str, content: bytes, folder: str) -> StateMetadata:
    """An entry whose schemas lie in that folder, which ends with a slash."""
    version, _, text = content.decode().partition("\n")
    metadata = json.loads(text)
    schemas, stale = [], None
    for state in metadata["stateStoreInfo"]:
        named = state.get(NAMES, [])
        state[NAMES] = [folder + each.rpartition(SCHEMAS)[2] for each in named]
        schemas += state[NAMES]
        elsewhere = [a for a, b in zip(named, state[NAMES], strict=True) if not _same(a, b)]
        stale = stale or next(iter(elsewhere), None)
    corrected = json.dumps(metadata, separators=(",", ":"), ensure_ascii=False)
    return StateMetadata(path, schemas, stale, f"{version}\n{corrected}".encode())


def _same(named: str, place: str) -> bool:
    """True if two paths lead to one file, a link of an old place that leads to the new included."""
    if named == place or not place.startswith("file:"):
        return named == place
    return Path(_local(named)).resolve() == Path(_local(place)).resolve()


def _local(path: str) -> str:
    """A path as Hadoop writes it, `file:` before it and nothing escaped, without the scheme."""
    return path.removeprefix("file:")


def _names(store: fs.FileSystem, folder: str) -> list[str]:
    """The names in a folder that are numbers, as those of operators and batches are."""
    selector = fs.FileSelector(folder, allow_not_found=True)
    return sorted(
        info.base_name for info in store.get_file_info(selector) if info.base_name.isdigit()
    )
