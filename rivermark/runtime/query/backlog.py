"""Waiting input of a bounded run, measured before Spark starts, and the JVM for it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from rivermark.ingest.plan import opened_source
from rivermark.lake.delta import delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.statistics import file_sizes
from rivermark.model.source import weight_of
from rivermark.model.stream import AnyStream, Ingest, Stream, table_of
from rivermark.model.table import Table
from rivermark.runtime.checkpoint.positions import position, read_by_stream
from rivermark.runtime.spark.input_size import DRIVER_BYTES
from rivermark.runtime.spark.jvm import Kind
from rivermark.settings import Settings

LOG = logging.getLogger("rivermark")
BATCH_BYTES: Final = DRIVER_BYTES * 3 // 4
"""Bytes of input files for two cores after which a batch of events ends, the last file not counted.
With several inputs it is so of the one of which most waits."""
LEAST_BYTES: Final = BATCH_BYTES // 16
"""An input of which little waited at the start may have more of it later."""
LARGE: Final = 600 << 20
"""Bytes as text, two to four million events: from there on all of the JVM's compilers cost less
than the quick one alone (docs/decisions/0007-what-a-start-costs.md)."""


def kind_of_run(settings: Settings, streams: Iterable[AnyStream]) -> Kind:
    """The JVM for a bounded run of these streams: that for large ones where much waits for them.

    An ingest's records pass through the JVM only where a stream of this run reads its tables.
    Never raises: what is wrong with a stream's tables or checkpoint the run reports better.
    """
    streams = [*streams]
    read = {t.name for s in streams if not isinstance(s, Ingest) for t in read_by_stream(s)}
    waiting = 0
    for stream in streams:
        if isinstance(stream, Ingest) and read.isdisjoint(t.name for t in stream.tables):
            continue
        try:
            waiting += waiting_bytes(settings, stream)
        except Exception as error:
            LOG.debug("how much waits for %s is unknown: %s", stream.name, error)
        if waiting > LARGE:
            return "large"
    return "short"


def kind_of_backfill(size: int) -> Kind:
    """The session for days whose inputs have so many bytes as text."""
    return "batch" if size > LARGE else "short"


def waiting_bytes(settings: Settings, stream: AnyStream) -> int:
    """Bytes as text, approximately, that the stream has not read: of its source, or of tables."""
    lake = settings.lake()
    if isinstance(stream, Ingest):
        with opened_source(lake, settings.landing_root, stream) as source:
            return source.backlog().weight
    tables = read_by_stream(stream)
    return sum(weight_of(t.name, "parquet", unread_bytes(lake, stream, t)) for t in tables)


def unread_bytes(lake: Lake, stream: AnyStream, table: Table) -> int:
    """Bytes of files that the stream has not read of a table; all of them before its first start.

    What a batch that was not finished would read again is counted with them.
    """
    if not lake.exists(table):
        return 0
    path = lake.path(table)
    delta = delta_table(path)
    reader = position(lake, stream, str(delta.metadata().id))
    if reader is None or reader.snapshot:
        return sum(file_sizes(delta))
    return CommitLog(path).bytes_added(reader.version)


def most_bytes(lake: Lake, stream: Stream, cores: int) -> list[int | None]:
    """After how many bytes of each input a batch ends; None where files alone end it.

    Several inputs get shares of what waits of each, so that a backlog ends at once in all of
    them: one that ran ahead in event time would wait in state for the others.
    """
    # Of more cores executors write the batches of a backlog, each its part.
    most = BATCH_BYTES * max(1, cores // 2)
    if len(stream.reads) < 2:
        return [most if stream.volume == "events" else None]
    waiting = [unread_bytes(lake, stream, table_of(read)) for read in stream.reads]
    return [*shares(waiting, most=most, least=LEAST_BYTES)]


def shares(waiting: Sequence[int], *, most: int, least: int) -> list[int]:
    """Bytes that a batch takes of each input: `most` of the one of which most waits.

    The others get as much less as less waits of them, but `least` at least. Where one batch can
    take all that waits, no input is held back.
    """
    largest = max(waiting)
    if largest <= most:
        return [most] * len(waiting)
    return [max(most * size // largest, least) for size in waiting]
