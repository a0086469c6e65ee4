"""Which version of a table was current at a moment, and which versions can still be read."""

from __future__ import annotations

from datetime import UTC, datetime

from rivermark.errors import VersionNotAvailable
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.table import Table


def resolve_version(lake: Lake, table: Table, as_of: int | datetime | None) -> int:
    """The version to read: that number, the last one at or before that moment, or the newest.

    Moments are UTC where they carry no zone, and are compared with the times kept *in* the commits,
    which a copied table keeps too. A moment after the last commit is the newest version. Raises
    VersionNotAvailable with the earliest version or moment there is.
    """
    log = CommitLog(lake.path(table))
    versions = log.versions()
    if not versions:
        raise VersionNotAvailable(f"table '{table.name}' does not exist yet: run its stream first")
    if as_of is None:
        return versions[-1]
    if isinstance(as_of, datetime):
        moment = as_of if as_of.tzinfo else as_of.replace(tzinfo=UTC)
        for commit in log.backwards():
            if commit.at <= moment:
                return commit.version
        first = log.read(versions[0])
        earliest = first.at.isoformat() if first else "unknown"
        raise VersionNotAvailable(
            f"table '{table.name}' at {moment.isoformat()} is not available; the earliest moment "
            f"is {earliest} (version {versions[0]})"
        )
    if not versions[0] <= as_of <= versions[-1]:
        raise VersionNotAvailable(
            f"version {as_of} of table '{table.name}' is not available; there are "
            f"{versions[0]} to {versions[-1]}"
        )
    return as_of
