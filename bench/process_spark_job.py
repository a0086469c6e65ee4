"""The work that bench.process_spark measures: long rides over a Delta table, in its own process.

    python -m bench.process_spark_job HOME [packed|rows|pandas] BATCH

Prints one JSON object a batch and one at the end.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StructField, StructType, TimestampType

from bench.process_workloads import LongRides
from rivermark.model.stream import Stream
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.process.spark import ProcessBuild, run_process
from rivermark.process.spark.reading import BUCKET, Reader, travelling
from rivermark.process.spark.stateful import BucketProcessor, Core
from rivermark.process.spark.writing import ROWS, unpacked
from rivermark.runtime.spark.session import open_session
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings

RIDES: Final = Table(
    name="bench/rides",
    schema=StructType(
        [
            StructField("ride_id", LongType()),
            StructField("is_start", BooleanType()),
            StructField("at", TimestampType()),
            StructField("driver", LongType()),
        ]
    ),
    description="STARTs and ENDs of rides.",
    event_time="at",
)
ALERTS: Final = Table(
    name="bench/long_rides",
    schema=StructType([StructField("ride_id", LongType()), StructField("at", TimestampType())]),
    description="Rides of more than two hours.",
    event_time="at",
)
BUILD: Final = run_process(LongRides)


class RowByRow(BucketProcessor):
    """As ours, but Spark hands over every event as a row, or as rows of a pandas frame."""

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """Make a packet of the rows."""
        reader: Reader = self._core.readers[0]
        names = reader.schema.names
        found: list[Any] = list(rows)
        if found and hasattr(found[0], "columns"):
            # By place: a name that begins with an underscore does not come through.
            places = range(len(names))
            parts = [[each.iloc[:, n].to_numpy() for n in places] for each in found]
            columns: list[Any] = [np.concatenate(each) for each in zip(*parts, strict=True)]
        else:
            columns = [[getattr(row, name) for row in found] for name in names]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, reader.schema, strict=True)]
        packet = pa.RecordBatch.from_arrays(arrays, schema=reader.schema)
        arrivals, dead = self._core.taken(key[0], [(0, 0, packet.serialize().to_pybytes())])
        return self._run(key[0], arrivals, dead, timerValues)


class RowByRowPandas(RowByRow):
    """Answers with pandas frames."""

    def _run(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        import pandas as pd

        for packed in super()._run(*arguments, **options):
            yield pd.DataFrame(packed.asDict()[ROWS], columns=self._core.writer.schema.names)


def unpacked_form(form: str) -> Any:
    """The stream's build without packing: what PySpark's own forms cost."""
    bound = stream_of(BUILD).build
    assert isinstance(bound, ProcessBuild)
    assert bound._writer is not None
    assert bound._built is not None
    writer, built = bound._writer, bound._built

    def build(rides: DataFrame) -> DataFrame:
        reader = bound._reader("events", rides.schema)
        core = Core(bound.make, bound.limits, (reader,), writer)
        sent = travelling(reader, rides, bound.buckets).withColumn(
            BUCKET, F.col(BUCKET).cast("int")
        )
        grouped = sent.groupBy(BUCKET)
        if form == "rows":
            told = grouped.transformWithState(RowByRow(core), writer.packed, "Append", "EventTime")
            return unpacked(told.select(F.inline(ROWS)), built)
        return unpacked(
            grouped.transformWithStateInPandas(
                RowByRowPandas(core), writer.schema, "Append", "EventTime"
            ),
            built,
        )

    return build


def stream_of(build: Any) -> Stream:
    """The stream that is measured."""
    return Stream(
        name="bench/long_rides",
        reads=(RIDES,),
        build=build,
        writes=ALERTS,
        lateness=timedelta(minutes=1),
        state_store="rocksdb",
        description="Rides of more than two hours.",
        group="bench",
    )


def main() -> None:
    """Drain the table."""
    home, form, files = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    settings = Settings(home=home, driver_memory="2g", files_per_trigger=files)
    spark = open_session(settings, "long")
    stream = stream_of(BUILD if form == "packed" else unpacked_form(form))
    began = time.monotonic()
    done = run_bounded(spark, settings, Topology([stream]), [stream], run_id="bench")
    summary = done[stream.name]
    say(
        event="done",
        seconds=round(time.monotonic() - began, 2),
        rows_in=summary.rows_in,
        rows_out=summary.rows_out,
        batches=summary.batches,
        state_bytes=summary.state_bytes,
        dropped=summary.dropped_by_watermark,
    )
    ops = spark.read.format("delta").load(settings.lake().path("ops/stream_progress"))
    told = ("batch_id", "duration_ms", "rows_in", "state_rows", "state_bytes")
    for batch, ms, rows, state_rows, state_bytes in ops.orderBy("batch_id").select(*told).collect():
        say(
            event="batch",
            batch=batch,
            ms=ms,
            rows=rows,
            state_rows=state_rows,
            state_bytes=state_bytes,
        )
    spark.stop()


def say(**facts: object) -> None:
    """Tell the measuring process."""
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
