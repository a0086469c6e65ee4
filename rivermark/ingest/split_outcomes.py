"""What became of each split of a batch, such as a file: how many of its rows went where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.system_tables import rows_of
from rivermark.model.source import PlannedSplit
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
    description="One row a split (a file): how many of its rows were admitted, late, quarantined.",
)


@dataclass(frozen=True)
class SplitOutcome:
    """A split and where its rows went: rows = admitted + late + quarantined.

    A split that could not be read has no rows, and the reason.
    """

    split: PlannedSplit
    rows: int = 0
    admitted: int = 0
    late: int = 0
    quarantined: int = 0
    reason: str | None = None


def write_outcomes(
    writer: TableWriter, stream: str, batch: int, outcomes: Sequence[SplitOutcome]
) -> None:
    """Append the outcomes of a batch, once."""
    if not outcomes:
        return
    now = datetime.now(UTC)
    rows = [
        {
            "stream": stream,
            "file": o.split.name,
            "path": o.split.path,
            "size": o.split.size,
            "modified_at": o.split.modified_at,
            "ingest_batch": o.split.batch,
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
    writer.append_once(rows_of(INGEST_FILES, rows), batch)
