"""Readers: they turn the text of a value into a typed one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

from pyspark.sql.types import AtomicType, DataType, NullType

Micros = int
"""A time in microseconds since 1970-01-01T00:00Z: it may lie in years that Python does not have."""


@dataclass(frozen=True)
class Reader(ABC):
    """Reads texts as values of one type; a text that it cannot read quarantines its row.

    A reader knows the text alone, may be pickled, and needs no Spark.
    """

    type: DataType

    def fitted(self, kind: DataType) -> Self | None:
        """Returns the reader for a field of a type; None where it reads another one."""
        return self if self.type == kind else None


class ValueReader(Reader):
    """A reader in Python."""

    @abstractmethod
    def value(self, text: str) -> Any:
        """The value that a text means, None for one that cannot be read; never raises.

        Times are `Micros`.
        """


@dataclass(frozen=True)
class SqlReader(Reader):
    """A reader in SQL (rivermark.model.field_readers.sql), evaluated by DuckDB."""

    expression: str
    then: ValueReader | None = None

    def fitted(self, kind: DataType) -> Self | None:
        """Returns the reader for a field of a type, to which its values are cast."""
        then = self.then and self.then.fitted(kind)
        if (self.then and not then) or not isinstance(kind, AtomicType):
            return None
        return replace(self, type=kind, then=then)


@dataclass(frozen=True)
class LandingTime(Reader):
    """Reads no text: the moment at which the row's split was planned."""


ANY = NullType()
"""The type of a reader whose field says it."""
