"""The column lineage of streams, as the runs of a home analyzed it: a catalog shows it so.

Who shows it has no Spark session, and to start one costs seconds at each load.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from rivermark.model.stream import AnyStream, BindableBuild, Stream, inputs_of
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
