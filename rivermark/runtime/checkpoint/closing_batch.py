"""The batch without data that closes what the last batch allowed to close, planned at a start.

Spark makes such a batch when the watermark has passed state, and learns that from the plan of the
batch before, which a restart does not have: windows would wait for the next row. So the start
writes the plan as Spark would have written it, and Spark finds a batch that was planned and is not
finished, as after a kill within it. Written for the offset log of Spark 4.2, format v1.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Final

from rivermark.lake.filesystem import filesystem, is_local, write_file
from rivermark.lake.integrity.sidecar import sidecar_of, write_sidecar
from rivermark.runtime.checkpoint.generation import newest_entry
from rivermark.runtime.checkpoint.identity import has_state
from rivermark.runtime.checkpoint.watermarks import batch_watermark, next_watermark

FORMAT: Final = "v1"


def batch_to_close(checkpoint: str) -> int | None:
    """The batch that closes what the last one allowed; None where none is missing.

    None is missing where the last batch is not finished or did not move the watermark, and where
    the query keeps no state.
    """
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
