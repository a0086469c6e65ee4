"""Progress of a stream in event time, as its checkpoint tells it after any restart.

Spark makes a batch without data when the watermark has passed state, and learns that from the plan
of the batch before, which a restart does not have: windows would wait for the next row. So a start
plans the batch that closes what the last one allowed to close as Spark would have written it, and
Spark finds a batch that was planned and is not finished, as after a kill within it. Written for the
offset log of Spark 4.2, format v1.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pyarrow import fs

from rivermark.lake.filesystem import filesystem, is_local, write_file
from rivermark.lake.integrity.sidecar import sidecar_of, write_sidecar
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


FORMAT: Final = "v1"


def batch_to_close(checkpoint: str) -> int | None:
    """The batch that closes what the last one allowed; None where none is missing.

    None is missing where the last batch is not finished or did not move the watermark, and where
    the query keeps no state.
    """
    # Here, because commands without Spark read watermarks.
    from rivermark.runtime.checkpoint.identity import has_state

    store, path = filesystem(checkpoint)
    planned, finished = (newest_entry(store, f"{path}/{log}") for log in ("offsets", "commits"))
    if finished is None or planned != finished or not has_state(checkpoint):
        return None
    before, after = batch_watermark(checkpoint, finished), next_watermark(checkpoint, finished)
    if after is None or (before is not None and after <= before):
        return None
    return finished + 1


def plan_closing_batch(checkpoint: str, batch: int) -> bool:
    """Plan a batch without data, by the watermark that the batch before led to.

    The caller holds the stream's lease and has synced what Spark wrote; no query uses the
    checkpoint. Returns False where the last plan is in a format that is not known.
    """
    store, path = filesystem(checkpoint)
    with store.open_input_stream(f"{path}/offsets/{batch - 1}") as file:
        version, metadata, *offsets = file.read().decode().split("\n")
    reached = next_watermark(checkpoint, batch - 1)
    if version != FORMAT or reached is None:
        return False
    plan = json.loads(metadata)
    plan["batchWatermarkMs"] = round(1000 * reached.timestamp())
    plan["batchTimestampMs"] = time.time_ns() // 1_000_000
    content = "\n".join([version, json.dumps(plan, separators=(",", ":")), *offsets])
    target = f"{checkpoint}/offsets/{batch}"
    if is_local(checkpoint):
        # One of a file that was lost would not agree with this one.
        sidecar_of(Path(f"{path}/offsets/{batch}")).unlink(missing_ok=True)
    write_file(target, content.encode())
    if is_local(checkpoint):
        write_sidecar(Path(f"{path}/offsets/{batch}"), durable=True)
    return True
