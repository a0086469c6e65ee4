"""What reads the text of a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column
from pyspark.sql.types import DataType

Reader = Callable[[Column], Column]
"""Turns the text of a value into the field's type; null for a text that it cannot read."""


@dataclass(frozen=True)
class NamedReader:
    """A reader whose plain spellings the fast lane reads too (rivermark.ingest.parse.lane).

    `read` decides about every other spelling, and is what a text means. `type` is what it returns,
    `zone` that of wall-clock times.
    """

    kind: Literal["text", "integer", "decimal", "number", "boolean", "instant", "wall", "millis"]
    type: DataType
    read: Reader
    decimal_comma: bool = False
    zone: str = "UTC"

    def __call__(self, text: Column) -> Column:
        """The value that a text means; null for one that cannot be read."""
        return self.read(text)
