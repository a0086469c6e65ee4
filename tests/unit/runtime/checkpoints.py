"""A stream's checkpoint as Spark writes it: how far it has read a table."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from deltalake import DeltaTable

from rivermark import Stream
from rivermark.lake.lake import Lake
from rivermark.model.stream import AnyStream, table_of
from rivermark.runtime.checkpoint.generation import Generation, write_generation


def read(
    lake: Lake,
    stream: Stream,
    batch: int,
    version: int,
    *,
    done: bool = True,
    snapshot: bool = False,
) -> None:
    """A batch of the stream's first input: planned up to before that version, finished or not."""
    identity = str(DeltaTable(lake.path(table_of(stream.reads[0]))).metadata().id)
    read_of(lake, stream, identity, batch, version, done=done, snapshot=snapshot)


def read_of(
    lake: Lake,
    stream: AnyStream,
    identity: str,
    batch: int,
    version: int,
    *,
    done: bool = True,
    snapshot: bool = False,
) -> None:
    """The same, of the table of that id."""
    write_generation(lake, stream, Generation(0, datetime(2026, 1, 1, tzinfo=UTC), 2))
    folder = Path(lake.checkpoint(stream.name, 0))
    place = {
        "sourceVersion": 1,
        "reservoirId": identity,
        "reservoirVersion": version,
        "index": -1,
        "isStartingVersion": snapshot,
    }
    for name, text in (("offsets", f"v1\n{{}}\n{json.dumps(place)}"), ("commits", "v1\n{}")):
        (folder / name).mkdir(parents=True, exist_ok=True)
        if name == "offsets" or done:
            (folder / name / str(batch)).write_text(text)
