"""The same core over a table: a bucket's events at once, then the end of the input."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rivermark.process.instants import BEGINNING, END_OF_TIME
from rivermark.process.spark.stateful import Core


@dataclass
class BucketRun:
    """Runs a bucket of a table to the end of time; for `applyInArrow`."""

    core: Core

    def __call__(self, key: tuple[Any, ...], packets: pa.Table) -> pa.Table:
        """Wire rows of all that the process writes."""
        columns = (packets.column(name).to_pylist() for name in ("input", "place", "payload"))
        # Spark gives keys as Arrow has them: a scalar of it equals no number of Python's.
        label = key[0].as_py()
        arrivals, dead = self.core.taken(label, zip(*columns, strict=True))
        engine = self.core.engine
        now = int(time.time() * 1000)
        bucket = engine.open(None)
        outputs = engine.advance(bucket, arrivals, BEGINNING, now)
        outputs.extend(engine.advance(bucket, [], END_OF_TIME, now))
        outputs.dead.extend(dead)
        self.core.stop()
        rows = pa.array(self.core.writer.rows(outputs), self.core.writer.arrow)
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])
