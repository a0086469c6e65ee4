"""A parsed batch as admission handles it: its statistics, its marks, and where its rows go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from rivermark.ingest.split_statistics import SplitStatistics
from rivermark.ingest.watermark import Bounds
from rivermark.model.contract import META, RAW_SCHEMA
from rivermark.model.stream import Ingest
from rivermark.model.watermark import WATERMARK_AFTER

Rows: TypeAlias = "pa.Table | DataFrame"

RAW_COLUMNS: Final = tuple(RAW_SCHEMA.fieldNames())
META_COLUMNS: Final = tuple(f.name for f in META)
AHEAD: Final = "event_time_ahead_of_stream"
"""The reason of a row that runs ahead of the stream by more than `max_jump`."""


class ParsedBatch(ABC):
    """The rows of one batch after parsing, before and after they are marked.

    First `statistics`, then `mark`, then the selections. Arrow and Spark batches return the same
    rows; they differ in where the work is done.
    """

    def __init__(self, ingest: Ingest) -> None:
        self.time = ingest.contract.event_time
        self.mark_field = ingest.watermark.mark if ingest.watermark else None
        columns = ingest.admitted.schema.fieldNames()
        self.carries = WATERMARK_AFTER.name in columns
        self.admitted_columns = tuple(name for name in columns if name != WATERMARK_AFTER.name)
        self.after: Mapping[str, datetime] = {}
        """The watermark that each split left, by its name, where rows carry it."""

    def carry(self, bounds: Mapping[str, Bounds]) -> None:
        """Let admitted and late rows carry the watermark that their split left."""
        self.after = {name: own.after for name, own in bounds.items() if own.after}

    @abstractmethod
    def statistics(self) -> dict[str, SplitStatistics]:
        """Each split in figures, by its name; numbers records whose place is not known yet."""

    @abstractmethod
    def newest_until(self, split: str, ceiling: datetime) -> datetime | None:
        """The newest valid event time of a split at or before the ceiling."""

    @abstractmethod
    def mark_until(self, split: str, ceiling: datetime) -> datetime | None:
        """The latest mark of the valid rows of a split at or before the ceiling."""

    @abstractmethod
    def mark(self, bounds: Mapping[str, Bounds]) -> dict[str, tuple[int, int]]:
        """Mark rows as late or ahead by the bounds of their splits; counts both, by split."""

    @abstractmethod
    def raw(self) -> Rows:
        """Every event as it came."""

    @abstractmethod
    def admitted(self) -> Rows:
        """Events without a problem that are neither late nor ahead."""

    @abstractmethod
    def late(self) -> Rows:
        """Events without a problem behind their split's watermark."""

    @abstractmethod
    def quarantined(self) -> Rows:
        """Events with a problem, or ahead of the stream, as rows of the quarantine table."""

    def close(self) -> None:  # noqa: B027 - Arrow batches hold nothing
        """Release what is held in memory."""
