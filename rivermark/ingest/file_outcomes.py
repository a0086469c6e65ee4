"""What became of each file of a batch, kept for whoever asks where a file's rows are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from rivermark.ingest.source.spark_reader import Arrived
from rivermark.lake.batch_writer import TableWriter
from rivermark.model.table import Table

INGEST_FILES: Final = Table(
    name="ops/ingest_files",
    schema=StructType(
        [
            StructField("stream", StringType()),
            StructField("file", StringType()),
            StructField("path", StringType()),
            StructField("size", LongType()),
            StructField("modified_at", TimestampType()),
            StructField("ingest_batch", LongType()),
            StructField("rows", LongType()),
            StructField("admitted", LongType()),
            StructField("late", LongType()),
            StructField("quarantined", LongType()),
            StructField("status", StringType()),
            StructField("reason", StringType()),
            StructField("at", TimestampType()),
        ]
    ),
    description="One row a file: how many of its rows were admitted, late and set aside.",
)
ARROW: Final = pa.schema(
    [
        ("stream", pa.string()),
        ("file", pa.string()),
        ("path", pa.string()),
        ("size", pa.int64()),
        ("modified_at", pa.timestamp("us", "UTC")),
        ("ingest_batch", pa.int64()),
        ("rows", pa.int64()),
        ("admitted", pa.int64()),
        ("late", pa.int64()),
        ("quarantined", pa.int64()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


@dataclass(frozen=True)
class FileOutcome:
    """A file and where its rows went: rows = admitted + late + quarantined.

    A file that could not be read has no rows, and the reason.
    """

    file: Arrived
    rows: int
    admitted: int
    late: int
    quarantined: int
    reason: str | None = None

    @classmethod
    def unread(cls, file: Arrived, reason: str) -> FileOutcome:
        """The outcome of a file that is set aside as a whole."""
        return cls(file, 0, 0, 0, 0, reason)


def write_outcomes(
    writer: TableWriter, stream: str, batch: int, outcomes: Sequence[FileOutcome]
) -> None:
    """Append the outcomes of a batch, once."""
    if not outcomes:
        return
    now = datetime.now(UTC)
    rows = [
        {
            "stream": stream,
            "file": o.file.name,
            "path": o.file.path,
            "size": o.file.size,
            "modified_at": o.file.modified_at,
            "ingest_batch": o.file.arrival,
            "rows": o.rows,
            "admitted": o.admitted,
            "late": o.late,
            "quarantined": o.quarantined,
            "status": "set_aside" if o.reason else "read",
            "reason": o.reason,
            "at": now,
        }
        for o in outcomes
    ]
    writer.append_once(pa.Table.from_pylist(rows, ARROW), batch)
