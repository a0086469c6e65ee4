"""Progress of a stream in event time, as its checkpoint tells it after any restart."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from pyarrow import fs

from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.model.stream import Stream, passes_on
from rivermark.runtime.checkpoint.generation import newest_entry, read_generation


def batch_watermark(checkpoint: str, batch: int) -> datetime | None:
    """The watermark (UTC) by which Spark runs a batch, from the offset log written before it."""
    store, path = filesystem(checkpoint)
    return _moment(store, f"{path}/offsets/{batch}", "batchWatermarkMs")


def next_watermark(checkpoint: str, batch: int) -> datetime | None:
    """The watermark (UTC) that a finished batch led to, from the commit log written after it."""
    store, path = filesystem(checkpoint)
    return _moment(store, f"{path}/commits/{batch}", "nextBatchWatermarkMs")


def reached(checkpoint: str, stream: Stream, batch: int) -> datetime | None:
    """The moment (UTC) up to which all of the stream's results are written after that batch.

    What closes windows and gives up on partners writes what the batch's own watermark has passed.
    A stream that only hands events on has written all that lies before the next batch's.
    """
    if passes_on(stream) and len(stream.reads) == 1:
        return next_watermark(checkpoint, batch)
    return batch_watermark(checkpoint, batch)


def last_reached(lake: Lake, stream: Stream) -> datetime | None:
    """The moment (UTC) up to which the stream's results are written; None before there is any."""
    generation = read_generation(lake, stream)
    if generation is None:
        return None
    checkpoint = lake.checkpoint(stream.name, generation.number)
    store, path = filesystem(checkpoint)
    done = newest_entry(store, f"{path}/commits")
    return None if done is None else reached(checkpoint, stream, done)


def _moment(store: fs.FileSystem, path: str, name: str) -> datetime | None:
    """A time of the second line of a checkpoint's log entry; Spark writes 0 for none."""
    try:
        with store.open_input_stream(path) as file:
            lines = file.read().decode().splitlines()
        millis = int(json.loads(lines[1]).get(name, 0))
    except (FileNotFoundError, IndexError, ValueError):
        return None
    return datetime.fromtimestamp(millis / 1000, UTC) if millis > 0 else None
