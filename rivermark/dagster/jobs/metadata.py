"""The metadata of every stream's events: the same few keys everywhere, named here alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import dagster as dg

from rivermark.html.markdown import markdown_text
from rivermark.lake.lake import Lake
from rivermark.lake.snapshot import row_count
from rivermark.model.table import Table
from rivermark.runtime.batch_metrics import METRICS

Metadata = dict[str, dg.MetadataValue]

NUMBERS: Final = (
    "rows_in",
    "rows_out",
    "rows_per_second",
    "watermark_lag_seconds",
    "unread",
    "oldest_unread_seconds",
    "late",
    "quarantined",
    "duplicates",
    "state_rows",
    "state_bytes",
    "batch_ms",
    "batches",
)
"""Numbers of a stream; each becomes a plot on the asset's page."""

WATERMARK: Final = "watermark"
PENDING: Final = "pending"
ERROR: Final = "error"
MODE: Final = "mode"
ROW_COUNT: Final = "dagster/row_count"
DAY_ROW_COUNT: Final = "dagster/partition_row_count"
VERSION: Final = "version"


def of_numbers(numbers: Mapping[str, int | float]) -> Metadata:
    """The numbers that have a plot, in the order above, and those of a process of its own."""
    own = sorted(name for name in numbers if name.startswith(METRICS))
    return {name: _number(numbers[name]) for name in (*NUMBERS, *own) if name in numbers}


def of_watermark(watermark: datetime | None) -> Metadata:
    """The watermark as a moment that the page shows in the reader's zone."""
    return {WATERMARK: dg.MetadataValue.timestamp(watermark)} if watermark else {}


def of_pending(pending: tuple[str, ...]) -> Metadata:
    """Input that still waits, in words; a file's name is text there, whatever it holds."""
    return (
        {PENDING: dg.MetadataValue.md("\n".join(f"- {markdown_text(p)}" for p in pending))}
        if pending
        else {}
    )


def of_error(error: str | None) -> Metadata:
    """The last failure of a stream that has failed, or that is started again."""
    return {ERROR: dg.MetadataValue.text(error)} if error else {}


def of_mode(mode: str) -> Metadata:
    """The origin of the rows: the mode of a run, or an operation."""
    return {MODE: dg.MetadataValue.text(mode)}


def of_day_rows(rows: int) -> Metadata:
    """Number of rows that the table holds of the day that is reported."""
    return {DAY_ROW_COUNT: dg.MetadataValue.int(rows)}


def of_version(version: int) -> Metadata:
    """The version of the table that has what is reported; who reads it later pins that."""
    return {VERSION: dg.MetadataValue.int(version)}


def of_rows(lake: Lake, table: Table) -> Metadata:
    """Number of rows that the table holds, by its own statistics."""
    return {ROW_COUNT: dg.MetadataValue.int(row_count(lake, table))}


def markdown(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()
) -> str:
    """A Markdown table; a value can neither end its cell nor start another line or markup.

    Columns in `right` are aligned to the right.
    """
    marks = ["---:" if name in right else "---" for name in head]
    cells = [head, marks, *rows]
    return "\n".join(f"| {' | '.join(markdown_text(value) for value in line)} |" for line in cells)


def _number(value: float) -> dg.MetadataValue:
    return dg.MetadataValue.int(value) if isinstance(value, int) else dg.MetadataValue.float(value)
