"""The newest batch that each stream wrote to a table, noted beside its checkpoint.

A batch without rows makes no commit, so that the log alone cannot say whether commits are lost: a
table that was restored from an older copy, or whose newest entries are lost with the power, looks
like one for which nothing came. The note is written behind each commit and read at the start of a
run.
"""

from __future__ import annotations

import json
import logging
import os
import zlib
from pathlib import Path
from typing import Final

from rivermark.lake.filesystem import filesystem, is_local, write_file
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.model.errors import CheckpointIncompatible
from rivermark.model.sink import Origin
from rivermark.model.table import Table

LOG = logging.getLogger("rivermark")
LENGTH: Final = 64


def note_written(lake: Lake, table: Table | str, origin: Origin, batch: int) -> None:
    """Note a committed batch. Origins beside a stream's own have no checkpoint to lie by."""
    if ":" in origin.stream:
        return
    content = json.dumps({"batch": batch, "check": zlib.crc32(str(batch).encode())})
    path = note_path(lake, table, origin)
    if not is_local(path):
        write_file(path, content.encode(), durable=False)
        return
    place = Path(filesystem(path)[1])
    try:
        _overwrite(place, content)
    except FileNotFoundError:
        place.parent.mkdir(parents=True, exist_ok=True)
        _overwrite(place, content)


def _overwrite(path: Path, content: str) -> None:
    """Write in place, always as many bytes: a new file each time makes the next sync wait for it.

    What is torn by a kill does not agree with its own checksum.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(handle, content.ljust(LENGTH).encode(), 0)
    finally:
        os.close(handle)


def noted(lake: Lake, table: Table | str, origin: Origin) -> int | None:
    """The newest batch that was noted; None without a note that can be read."""
    path = note_path(lake, table, origin)
    store, place = filesystem(path)
    try:
        with store.open_input_stream(place) as file:
            content = json.loads(file.read())
        batch = int(content["batch"])
        if content["check"] == zlib.crc32(str(batch).encode()):
            return batch
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        pass
    LOG.warning("%s is damaged; the next batch writes it again", path)
    return None


def note_first(lake: Lake, target: str, origin: Origin, *, whole: bool) -> None:
    """Note, before its first batch, whether a target gets the rows of a table from the first on."""
    write_file(_first_path(lake, target, origin), json.dumps({"whole": whole}).encode())


def is_whole(lake: Lake, target: str, origin: Origin) -> bool | None:
    """True if a target got the rows of its table from the first on; None where it is not known."""
    store, place = filesystem(_first_path(lake, target, origin))
    try:
        with store.open_input_stream(place) as file:
            return bool(json.loads(file.read())["whole"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _first_path(lake: Lake, target: str, origin: Origin) -> str:
    return f"{note_path(lake, target, origin).removesuffix('.json')}.first"


def check_not_behind(
    lake: Lake, table: Table, origin: Origin, last: int | None, by: str = "batch"
) -> None:
    """Refuse a table that lacks the batch which was noted; `last` is the newest one known of it.

    Raises CheckpointIncompatible.
    """
    batch = None if ":" in origin.stream else noted(lake, table, origin)
    if batch is None or (last is not None and last >= batch):
        return
    log = CommitLog(lake.path(table))
    for commit in log.history():
        # The search for the newest batch may have stopped at a bound in time.
        metadata = commit.metadata
        ours = (metadata.get("stream"), metadata.get("generation"))
        if ours == (origin.stream, origin.generation) and int(metadata.get(by, -1)) >= batch:
            return
    if not log.knows_all():
        return
    raise CheckpointIncompatible(
        f"stream '{origin.stream}': table '{table.name}' in {lake.path(table)} lacks batch "
        f"{batch}, which was committed ({note_path(lake, table, origin)}): it lost commits, or is "
        f"an older copy. Put the table back, or start over on purpose: rivermark reset "
        f"{origin.stream}. rivermark fsck {table.name} says more."
    )


def note_path(lake: Lake, table: Table | str, origin: Origin) -> str:
    """The path of the note of a table, or of another target by its name."""
    folder = lake.checkpoint(origin.stream, origin.generation)
    name = table if isinstance(table, str) else table.name
    return f"{folder}/written/{name.replace('/', '.')}.json"
