"""The column lineage of streams, as declared, or as the runs of a home analyzed it.

Who shows it has no Spark session, and to start one costs seconds at each load.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from rivermark.model.contract import META
from rivermark.model.reader import LandingTime
from rivermark.model.stream import AnyStream, BindableBuild, Ingest, Stream, inputs_of
from rivermark.model.table import Table
from rivermark.runtime.code_version import code_of
from rivermark.runtime.supervision import state_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG: Final = logging.getLogger("rivermark")
FOLDER: Final = "column_lineage"

Lineage = Mapping[str, list[tuple[str, str]]]
"""Tables and columns of them by the column that is computed of these."""


class LineageRecord(msgspec.Struct, frozen=True):
    """The sources of a stream's columns, and the code that computes them."""

    code: str
    columns: dict[str, list[tuple[str, str]]]


def known_lineage(stream: AnyStream, table: Table, state: Path) -> Lineage:
    """The columns that those of the table come from; `state` holds what runs recorded."""
    if isinstance(stream, Ingest):
        return ingest_lineage(stream, table)
    if isinstance(stream.build, BindableBuild):
        return {}
    return recorded_lineage(state, stream)


Columns = list[tuple[str, str]]
"""Names of tables, each with the name of a column of it."""


def ingest_lineage(ingest: Ingest, table: Table) -> dict[str, Columns]:
    """The columns that each column of one of the ingest's tables comes from.

    Fields are read in the payload of the raw rows. A column is left out where the declaration does
    not say it: of raw rows, whose source is no table; what rules and watermarks decide.
    """
    if table.name == ingest.raw.name:
        return {}
    if table.name != ingest.versions.name and table.name == ingest.admitted.name:
        return {name: [(ingest.versions.name, name)] for name in table.schema.names}
    raw = ingest.raw.name
    place: dict[str, Columns] = {column.name: [(raw, column.name)] for column in META}
    fields: dict[str, Columns] = {
        field.name: [(raw, "_landed_at" if isinstance(field.read, LandingTime) else "payload")]
        for field in ingest.contract.fields
    }
    if table.name == ingest.quarantine.name:
        time = fields[ingest.contract.event_time]
        return {**place, "payload": [(raw, "payload")], "event_time": time}
    return fields | place


def recorded_lineage(state: Path, stream: AnyStream) -> Lineage:
    """By the code that ran last; nothing where none was recorded."""
    record = _read(_path(state, stream))
    return {} if record is None else record.columns


def record_lineage(spark: SparkSession, state: Path, streams: Iterable[AnyStream]) -> None:
    """Analyze the streams whose code or inputs have changed since.

    Those of ingests are declared, and a process function may compute a column of all.
    """
    for stream in streams:
        if isinstance(stream, Stream) and not isinstance(stream.build, BindableBuild):
            try:
                _record(spark, _path(state, stream), stream)
            except Exception as error:
                # It is shown beside what a run does: what is wrong with a build ends its stream.
                LOG.debug("stream '%s': no column lineage: %s", stream.name, error)


def _record(spark: SparkSession, path: Path, stream: Stream) -> None:
    from rivermark.runtime.preflight.column_lineage import column_lineage

    columns = "; ".join(f"{t.name}: {t.schema.simpleString()}" for t in inputs_of(stream))
    code = f"{code_of(stream)} of {hashlib.sha256(columns.encode()).hexdigest()[:12]}"
    known = _read(path)
    if known is None or known.code != code:
        record = LineageRecord(code, column_lineage(spark, stream))
        state_file.write(path, record, durable=False)


def _read(path: Path) -> LineageRecord | None:
    try:
        return state_file.read(path, LineageRecord)
    except state_file.UnreadableState as error:
        LOG.warning("column lineage: %s", error)
        return None


def _path(state: Path, stream: AnyStream) -> Path:
    return state_file.path_for(state / FOLDER, stream.name)
