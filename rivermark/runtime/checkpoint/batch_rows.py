"""The rows of a batch that goes to several tables, kept from before its first commit to the next.

Each table commits by itself, so that a kill leaves some of them with the batch and some without. A
build that is computed again may give other rows (a service answers otherwise, a static table has
changed): the others get what was computed at first. A batch for one table needs no such file, as
its commit says what the batch was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

import pyarrow as pa

from rivermark.lake.filesystem import content_of, filesystem, write_file

FOLDER: Final = "rows"
Files: TypeAlias = "tuple[str, Sequence[dict[str, Any]]]"
"""A folder or URI, and the actions that add data files in it to a table."""


def keep_rows(checkpoint: str, batch: int, rows: pa.Table) -> None:
    """Keep what a batch was computed as, in place of the batch before it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    write_file(_path(checkpoint, batch), sink.getvalue().to_pybytes())
    forget_rows(checkpoint, batch - 1)


def kept_rows(checkpoint: str, batch: int) -> pa.Table | None:
    """The rows kept of a batch; None where there are none."""
    content = content_of(*filesystem(_path(checkpoint, batch)))
    return None if content is None else pa.ipc.open_stream(content).read_all()


def keep_files(checkpoint: str, batch: int, files: Sequence[Files]) -> None:
    """As `keep_rows`, of a batch whose rows executors have written, by output."""
    write_file(_path(checkpoint, batch, "json"), json.dumps(files).encode())
    forget_rows(checkpoint, batch - 1)


def kept_files(checkpoint: str, batch: int) -> list[Files] | None:
    """The files of a batch by output; None where none were kept."""
    content = content_of(*filesystem(_path(checkpoint, batch, "json")))
    return None if content is None else [(folder, adds) for folder, adds in json.loads(content)]


def forget_rows(checkpoint: str, batch: int) -> None:
    """Remove what was kept of a batch, if anything was."""
    for kind in ("arrow", "json"):
        store, path = filesystem(_path(checkpoint, batch, kind))
        with suppress(FileNotFoundError):
            store.delete_file(path)


def _path(checkpoint: str, batch: int, kind: str = "arrow") -> str:
    return f"{checkpoint}/{FOLDER}/{batch}.{kind}"
