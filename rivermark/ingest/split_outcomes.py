"""The outcome of each split of a batch, such as a file: how many of its rows went where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow.compute as pc
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.delta import read_rows
from rivermark.lake.lake import Lake
from rivermark.lake.snapshot import open_table
from rivermark.lake.system_tables import rows_of
from rivermark.model.source import LOST, PlannedSplit, Split
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
            StructField("digest", StringType()),
            StructField("replaced", LongType()),
            StructField("skipped", LongType()),
        ]
    ),
    description="One row a split (a file): how many of its rows were admitted, late, quarantined.",
)
"""`replaced` counts the quarantined rows of former readings of a file that was taken again;
`skipped` what is no event, as the header line of a file or a tombstone of a topic."""


@dataclass(frozen=True)
class SplitOutcome:
    """A split and where its rows went: rows = admitted + late + quarantined.

    `skipped` counts what is no event and no row: header lines and empty ones, tombstones. A split
    that could not be read has no rows, and the reason.
    """

    split: PlannedSplit
    rows: int = 0
    admitted: int = 0
    late: int = 0
    quarantined: int = 0
    reason: str | None = None
    skipped: int = 0


def _status(outcome: SplitOutcome) -> str:
    return "set_aside" if outcome.reason else "read"


def rows_replaced(lake: Lake, stream: str) -> int:
    """Quarantined rows of an ingest that are of former readings of its files."""
    return sum(row["replaced"] for row in _read_again(lake, stream))


def splits_read_again(lake: Lake, stream: str) -> list[Split]:
    """The splits of an ingest that were read again, as they were then."""
    return [
        Split(
            name=row["file"],
            path=row["path"],
            size=row["size"],
            modified_at=row["modified_at"],
            format=None,
            digest=row["digest"],
        )
        for row in _read_again(lake, stream)
    ]


def files_read(lake: Lake, stream: str) -> set[str]:
    """The names of the splits of an ingest whose outcome is recorded."""
    if not lake.exists(INGEST_FILES):
        return set()
    own = pc.field("stream") == stream
    names = read_rows(open_table(lake, INGEST_FILES), columns=["file"], filter=own)
    return {*names["file"].to_pylist()}


def _read_again(lake: Lake, stream: str) -> list[dict[str, Any]]:
    if not lake.exists(INGEST_FILES):
        return []
    ledger = open_table(lake, INGEST_FILES)
    if "replaced" not in ledger.schema.names:
        return []
    own = (pc.field("stream") == stream) & pc.field("replaced").is_valid()
    rows: list[dict[str, Any]] = read_rows(ledger, filter=own).to_pylist()
    return rows


def write_outcomes(
    writer: TableWriter, stream: str, batch: int, outcomes: Sequence[SplitOutcome]
) -> None:
    """Append the outcomes of a batch, once."""
    if not outcomes:
        return
    rows = [outcome_row(stream, outcome) for outcome in outcomes]
    writer.append_once(rows_of(INGEST_FILES, rows), batch)


def outcome_row(stream: str, outcome: SplitOutcome) -> dict[str, Any]:
    """The row of the ledger for an outcome."""
    split = outcome.split
    return {
        "stream": stream,
        "file": split.name,
        "path": split.path,
        "size": split.size,
        "modified_at": split.modified_at,
        "ingest_batch": split.batch,
        "rows": outcome.rows,
        "admitted": outcome.admitted,
        "late": outcome.late,
        "quarantined": outcome.quarantined,
        "skipped": outcome.skipped,
        "status": split.status if split.status == LOST else _status(outcome),
        "reason": outcome.reason,
        "at": datetime.now(UTC),
        "digest": split.digest,
    }
