"""The seam between an enrichment and a service, which gives the values of the keys it knows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from pyspark.sql.types import StructType

from rivermark.model.errors import RivermarkError

Key: TypeAlias = tuple[Any, ...]
"""The values of the columns that are looked up by."""


class LookupFailed(RivermarkError):
    """A service could not be reached, or has no values to give; `passes`: it may the next time.

    `of_a_key`: it may be for one of the keys that were looked up together.
    """

    def __init__(self, message: str, *, passes: bool, of_a_key: bool = False) -> None:
        super().__init__(message)
        self.passes = passes
        self.of_a_key = of_a_key


class ServiceUnavailable(LookupFailed):
    """A failure that may pass and ended a batch: another start of the stream may find its rows."""


class LookupClient(ABC):
    """A connection to a service, used by one thread at a time and kept across batches."""

    @abstractmethod
    def get(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[Any]]:
        """The values of the keys that the service knows, in the order of the lookup's columns.

        Raises:
            LookupFailed: it cannot be known.
        """

    @abstractmethod
    def abort(self) -> None:
        """Make a `get` of another thread fail now; the client is closed after that."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""


class Lookup(ABC):
    """A service that rows are looked up in, as it is declared. Subclasses are frozen dataclasses.

    They are sent to the executors, where secrets are taken from the environment. `keys_at_once` is
    the number of keys in one request.
    """

    keys_at_once: int = 1

    @property
    @abstractmethod
    def name(self) -> str:
        """The service, in few words and without secrets."""

    @property
    @abstractmethod
    def schema(self) -> StructType:
        """The columns of its values."""

    @abstractmethod
    def open(self, on: Sequence[str], timeout: timedelta) -> LookupClient:
        """A client whose keys are values of the columns `on`; nothing is connected yet."""
