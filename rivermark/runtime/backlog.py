"""How much waits for a bounded run, told before any engine starts, and the JVM that it asks for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow.compute as pc
from deltalake import DeltaTable

from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.stats import file_sizes
from rivermark.lake.table import Table
from rivermark.runtime.jvm import Kind
from rivermark.runtime.readers import position, read_by_stream
from rivermark.settings import Settings
from rivermark.sources.arrivals import arrivals_of
from rivermark.sources.files import weight_of
from rivermark.sources.landed import LandedFiles
from rivermark.sources.screen import format_of
from rivermark.stream import AnyStream, Ingest

LARGE: Final = 192 << 20
"""Bytes as text, about a million events: from there on all of the JVM's compilers cost less than
the quick one alone (docs/decisions/0007-what-a-start-costs.md)."""


def kind_of_run(settings: Settings, streams: Iterable[AnyStream]) -> Kind:
    """The JVM for a bounded run of these streams: that of long runs where much waits for them."""
    waiting = 0
    for stream in streams:
        waiting += waiting_bytes(settings, stream)
        if waiting > LARGE:
            return "long"
    return "short"


def waiting_bytes(settings: Settings, stream: AnyStream) -> int:
    """Bytes as text, about, that the stream has not read: files that landed, commits of tables."""
    lake = settings.lake()
    if isinstance(stream, Ingest):
        return _landed(settings, lake, stream)
    return sum(_unread(lake, stream, table) for table in read_by_stream(stream))


def _landed(settings: Settings, lake: Lake, ingest: Ingest) -> int:
    arrivals = arrivals_of(ingest)
    known: set[str] = set()
    if lake.exists(arrivals):
        names = DeltaTable(lake.path(arrivals)).to_pyarrow_table(columns=["name"])["name"]
        known.update(pc.unique(names).to_pylist())
    try:
        found = LandedFiles(settings.landing_root, ingest.source).unknown(known)
    except OSError:
        # The run itself will tell of a folder that cannot be looked into.
        return 0
    return sum(weight_of(f.path, format_of(f.path, ingest.source), f.size) for f in found)


def _unread(lake: Lake, stream: AnyStream, table: Table) -> int:
    if not lake.exists(table):
        return 0
    path = lake.path(table)
    opened = DeltaTable(path)
    reader = position(lake, stream, str(opened.metadata().id))
    if reader is None or reader.snapshot:
        size = sum(file_sizes(opened))
    else:
        size = CommitLog(path).bytes_added(reader.version)
    return weight_of(path, "parquet", size)
