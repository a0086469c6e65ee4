"""Abilities of some sources beside what every source has, for rooms that need them.

They test for an ability, and never for which source it is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from rivermark.model.source import Source


@dataclass(frozen=True)
class SplitAsRead:
    """The record of a split: as it was, and when its outcome was written (UTC)."""

    name: str
    size: int
    modified_at: datetime
    at: datetime | None
    digest: str | None


class LandingSource(Source):
    """Its splits lie below the landing root, where they may change after they were read."""

    @abstractmethod
    def changed(self, landing_root: str, read: Iterable[SplitAsRead]) -> dict[str, str]:
        """The splits that are there and not as they were read, by name: how that shows, in words.

        Those that are gone are left out.
        """


class NeededVersion(NamedTuple):
    """The first version of a table that is still to be read; as a whole where `snapshot`."""

    number: int
    snapshot: bool = False


class TableSource(Source):
    """It reads versions of a Delta table, which are to be kept until they are read."""

    table: str
    """The path or URI of the table."""

    @abstractmethod
    def needed(self, planned: Collection[str], read: Collection[str]) -> NeededVersion | None:
        """The needed part of the table, by the names of all planned splits and of those read.

        None where nothing is: before the first plan it begins with the table as it is then.
        """


class MessageSource(Source):
    """A query in real time can read its messages, without a plan and each as it comes."""

    @abstractmethod
    def partition_count(self) -> int:
        """Number of partitions read, each by a task of its own; asks the brokers."""
