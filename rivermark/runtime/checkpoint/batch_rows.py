"""The rows of a batch that goes to several tables, kept from before its first commit to the next.

Each table commits by itself, so that a kill leaves some of them with the batch and some without. A
build that is computed again may give other rows (a service answers otherwise, a static table has
changed): the others get what was computed at first. A batch for one table needs no such file, as
its commit says what the batch was.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import pyarrow as pa

from rivermark.lake.filesystem import filesystem, write_file

FOLDER: Final = "rows"


def keep_rows(checkpoint: str, batch: int, rows: pa.Table) -> None:
    """Keep what a batch was computed as, in place of the batch before it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    write_file(_path(checkpoint, batch), sink.getvalue().to_pybytes())
    forget_rows(checkpoint, batch - 1)


def kept_rows(checkpoint: str, batch: int) -> pa.Table | None:
    """What was kept of a batch; None where nothing was."""
    store, path = filesystem(_path(checkpoint, batch))
    try:
        with store.open_input_file(path) as file:
            return pa.ipc.open_stream(file.read()).read_all()
    except FileNotFoundError:
        return None


def forget_rows(checkpoint: str, batch: int) -> None:
    """Remove what was kept of a batch, if anything was."""
    store, path = filesystem(_path(checkpoint, batch))
    with suppress(FileNotFoundError):
        store.delete_file(path)


def _path(checkpoint: str, batch: int) -> str:
    return f"{checkpoint}/{FOLDER}/{batch}.arrow"
