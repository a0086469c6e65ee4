"""How much waits for a bounded run, told before any engine starts, and the JVM that it asks for."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from deltalake import DeltaTable

from rivermark.ingest.source.arrivals import arrived
from rivermark.ingest.source.file_probe import format_of
from rivermark.ingest.source.listing import LandedFiles
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.statistics import file_sizes
from rivermark.model.file_source import weight_of
from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.table import Table
from rivermark.runtime.checkpoint.positions import position, read_by_stream
from rivermark.runtime.spark.jvm import Kind
from rivermark.settings import Settings

LOG = logging.getLogger("rivermark")
LARGE: Final = 600 << 20
"""Bytes as text, two to four million events: from there on all of the JVM's compilers cost less
than the quick one alone (docs/decisions/0007-what-a-start-costs.md)."""


def kind_of_run(settings: Settings, streams: Iterable[AnyStream]) -> Kind:
    """The JVM for a bounded run of these streams: that for large ones where much waits for them.

    Never raises: what is wrong with a stream's tables or checkpoint the run itself says better.
    """
    waiting = 0
    for stream in streams:
        try:
            waiting += waiting_bytes(settings, stream)
        except Exception as error:
            LOG.debug("how much waits for %s is unknown: %s", stream.name, error)
        if waiting > LARGE:
            return "large"
    return "short"


def waiting_bytes(settings: Settings, stream: AnyStream) -> int:
    """Bytes as text, about, that the stream has not read: files that landed, commits of tables."""
    lake = settings.lake()
    if isinstance(stream, Ingest):
        return _landed(settings, lake, stream)
    tables = read_by_stream(stream)
    return sum(weight_of(t.name, "parquet", unread_bytes(lake, stream, t)) for t in tables)


def unread_bytes(lake: Lake, stream: AnyStream, table: Table) -> int:
    """Bytes of files that the stream has not read of a table; all of them before its first start.

    What a batch that was not finished would read again is counted with them.
    """
    if not lake.exists(table):
        return 0
    path = lake.path(table)
    opened = DeltaTable(path)
    reader = position(lake, stream, str(opened.metadata().id))
    if reader is None or reader.snapshot:
        return sum(file_sizes(opened))
    return CommitLog(path).bytes_added(reader.version)


def shares(waiting: Sequence[int], *, most: int, least: int) -> list[int]:
    """Bytes that a batch takes of each input: `most` of the one of which most waits.

    The others get as much less as less waits of them, but `least` at least. Where one batch can
    take all that waits, nobody is held back.
    """
    largest = max(waiting)
    if largest <= most:
        return [most] * len(waiting)
    return [max(most * size // largest, least) for size in waiting]


def _landed(settings: Settings, lake: Lake, ingest: Ingest) -> int:
    known, _ = arrived(lake, ingest)
    found = LandedFiles(settings.landing_root, ingest.source).unknown(known)
    return sum(weight_of(f.path, format_of(f.path, ingest.source), f.size) for f in found)
