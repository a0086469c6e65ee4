"""The errors of the platform: each names the thing it is about and says what to do next."""

from __future__ import annotations

from typing import Self


class RivermarkError(Exception):
    """Anything the platform refuses or cannot do, with a message for the person who must act."""


class WrongUse(RivermarkError):
    """A request that makes no sense, whatever the tables hold; nothing was done."""


class DeclarationError(RivermarkError):
    """A stream, table or contract is declared in a way that cannot work; raised on import."""

    place = ""

    def at(self, place: object) -> Self:
        """Add the place of the declaration to the message, unless it has one already."""
        if place is not None and not self.place:
            self.place = str(place)
            self.args = (f"{self} ({place})",)
        return self


class TableSchemaMismatch(RivermarkError):
    """A table on disk has another schema than its declaration, beyond added nullable columns."""


class TableDamaged(RivermarkError):
    """A file of a table or of its log (`path`) is empty, cut, changed or missing."""

    def __init__(self, message: str, path: str = "", problem: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.problem = problem

    @classmethod
    def of(cls, table: str, path: str, problem: str) -> TableDamaged:
        """The refusal of a file of a table."""
        return cls(
            f"table '{table}': {path} {problem}. Nothing of the table was read. "
            f"See what can be done: rivermark fsck {table}",
            path,
            problem,
        )


class VersionNotAvailable(RivermarkError):
    """The log or the files of a table no longer hold the requested version or moment."""


class StreamAlreadyRunning(RivermarkError):
    """Another live process holds the stream; two writers on one checkpoint are never allowed."""


class LeaseLost(RivermarkError):
    """Another run has taken the stream over meanwhile; this one must not write any more."""


class CheckpointIncompatible(RivermarkError):
    """A checkpoint was made by another declaration, or is damaged; a restart cannot repair it."""


class PartitionStillOpen(RivermarkError):
    """A day was to be recomputed that the live stream has not finished yet."""


class RecordsLost(RivermarkError):
    """Records that were not read are no longer at their source; nothing was skipped."""

    def of_stream(self, stream: str) -> RecordsLost:
        """The same, with the two ways in which the stream can go on."""
        return RecordsLost(
            f"{self}. Nothing was skipped. To go on behind the gap, which is recorded: "
            f"rivermark accept-loss {stream}; to begin again with what is there: "
            f"rivermark reset {stream} --with-tables"
        )


class ReplayUnprovable(RivermarkError):
    """The log no longer shows whether the batch to be replayed was committed."""


class ServiceFailed(RivermarkError):
    """A service outside, such as a database (`service`), refused what it was asked for."""

    def __init__(self, message: str, service: str = "") -> None:
        super().__init__(message)
        self.service = service


class KeysNotUnique(RivermarkError):
    """A table that is joined whole has several rows of a key; each would repeat what it joins."""


class UnknownStream(WrongUse):
    """No stream, group or table has the requested name."""


class StreamFailed(RivermarkError):
    """A query of a run ended with an error; `stream` names it and the cause is chained."""

    def __init__(self, stream: str, message: str) -> None:
        super().__init__(f"stream '{stream}' failed: {message}")
        self.stream = stream
        self.reason = message
