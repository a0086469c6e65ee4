"""Rows that executors write as data files of a table; the driver gets the log's actions alone.

A reader that follows a table by its commits may stop between two files of one. So the files of a
commit lie in the order of their event times, and rows of one time in one file: what was read of a
commit moves a watermark beyond no row that follows
(docs/decisions/0031-commits-of-many-files.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial, reduce
from operator import add as plus
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rivermark.lake.append.data_file import Tree
from rivermark.lake.append.table_files import TableFiles

FILE_ROWS: Final = 500_000
"""Rows of a file: what a task holds at a time, and a tenth of a second of reading."""
QUANTILES: Final = 1_000
"""Into so many ranges rows are divided at most."""
LEAST_ROWS: Final = 50_000
"""Fewer rows are not divided among tasks."""


def write_files(rows: DataFrame, files: TableFiles, event_time: str | None) -> list[Tree]:
    """Have tasks write the rows; returns the actions that add their files, in the files' order.

    With an event time the rows are divided by ranges of it, for which they are computed twice: of
    what is dear, or keeps state, give a frame that is persisted. Files of tasks that failed, and
    all of them where this fails, belong to nothing, and maintenance removes them.
    """
    chosen = rows if event_time is None else in_ranges(rows, event_time)
    most = FILE_ROWS if event_time is None else None
    added = chosen.mapInArrow(partial(_write, files, most), "added string").toArrow()
    return [json.loads(text) for text in added["added"].to_pylist()]


def in_ranges(rows: DataFrame, event_time: str) -> DataFrame:
    """The rows in partitions that are ranges of their event time, ascending; none is first."""
    at = F.unix_micros(F.col(event_time).cast("timestamp"))
    shares = [i / QUANTILES for i in range(1, QUANTILES)]
    counted, ends = F.count(F.lit(1)).alias("n"), F.percentile_approx(at, shares, 10_000)
    [figures] = rows.agg(counted, ends.alias("ends")).toArrow().to_pylist()
    cores = rows.sparkSession.sparkContext.defaultParallelism
    wanted = max(-(-figures["n"] // FILE_ROWS), min(cores, figures["n"] // LEAST_ROWS))
    parts, every = min(wanted, QUANTILES), figures["ends"] or []
    bounds = sorted({every[i * QUANTILES // parts - 1] for i in range(1, parts) if every})
    if not bounds:
        return rows.coalesce(1)
    beyond: list[Column] = [F.coalesce((at > F.lit(end)).cast("int"), F.lit(0)) for end in bounds]
    return rows.repartitionById(len(bounds) + 1, reduce(plus, beyond))


def _write(
    files: TableFiles, most: int | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write a partition as files of at most so many rows, or as one."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if most is not None and count >= most:
            yield from _added(files, held)
            held, count = [], 0
    if count:
        yield from _added(files, held)


def _added(files: TableFiles, held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    texts = [json.dumps(each) for each in files.write(pa.Table.from_batches(held))]
    yield pa.RecordBatch.from_pydict({"added": pa.array(texts, pa.string())})
