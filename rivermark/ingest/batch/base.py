"""A parsed batch as the door handles it: its facts, its verdicts, and where its rows go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from rivermark.ingest.file_statistics import FileFacts
from rivermark.ingest.watermark import Verdict
from rivermark.model.contract import META, RAW_SCHEMA
from rivermark.model.stream import Ingest

Rows: TypeAlias = "pa.Table | DataFrame"

RAW_COLUMNS: Final = tuple(RAW_SCHEMA.fieldNames())
META_COLUMNS: Final = tuple(f.name for f in META)
AHEAD: Final = "event_time_ahead_of_stream"
"""The reason of a row set aside because it runs ahead of the stream by more than `max_jump`."""


class ParsedBatch(ABC):
    """The rows of one batch after parsing, before and after they are judged.

    First `facts`, then `judge`, then the selections. Both kinds (collected, spread) give the same
    rows; they differ in where the work is done.
    """

    def __init__(self, ingest: Ingest) -> None:
        """Remember whose rows these are."""
        self.time = ingest.contract.event_time
        self.admitted_columns = tuple(ingest.admitted.schema.fieldNames())

    @abstractmethod
    def facts(self) -> dict[str, FileFacts]:
        """Each file in figures, by its name; numbers the lines of files read just now."""

    @abstractmethod
    def newest_until(self, file: str, ceiling: datetime) -> datetime | None:
        """The newest valid event time of a file at or before the ceiling."""

    @abstractmethod
    def judge(self, bounds: Mapping[str, Verdict]) -> dict[str, tuple[int, int]]:
        """Mark rows as late or ahead by the verdicts on their files; counts both, by file."""

    @abstractmethod
    def raw(self) -> Rows:
        """Every event as it came."""

    @abstractmethod
    def admitted(self) -> Rows:
        """Events without a problem that are neither late nor ahead."""

    @abstractmethod
    def late(self) -> Rows:
        """Events without a problem behind their file's watermark."""

    @abstractmethod
    def set_aside(self) -> Rows:
        """Events with a problem, or ahead of the stream, as rows of the quarantine table."""

    def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Let go of what was held in memory."""
