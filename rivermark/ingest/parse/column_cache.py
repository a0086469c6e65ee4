"""Columns that are chosen anew for every batch, handed to Spark's JVM once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame


class Projection:
    """The columns of a `select` that is done again and again.

    `DataFrame.select` sends its columns one by one, a call into the JVM each. With many queries in
    a process each call waits for Python's lock, and a batch of the door made 370 of them. The
    columns belong to the session that first used them.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        """Remember the columns."""
        self._columns = list(columns)
        self._sent: Any = None

    def of(self, rows: DataFrame) -> DataFrame:
        """The rows with these columns alone."""
        if self._sent is None:
            self._sent = rows._jcols(*self._columns)  # type: ignore[operator]
        return DataFrame(rows._jdf.select(self._sent), rows.sparkSession)
