"""Versions of a table: the one current at a moment, and those that can still be read."""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime
from urllib.parse import unquote

from deltalake.exceptions import DeltaError
from pyarrow import fs

from rivermark.lake.delta import delta_table
from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.retention import kept_since_in_words
from rivermark.model.errors import VersionNotAvailable
from rivermark.model.table import Table


def resolve_version(lake: Lake, table: Table | str, as_of: int | datetime | None) -> int:
    """The version to read: that number, the last one at or before that moment, or the newest.

    Moments are UTC where they carry no zone, and are compared with the times kept *in* the commits,
    which a copied table keeps too. A moment after the last commit is the newest version. Raises
    VersionNotAvailable with the earliest version or moment there is, also where the log still shows
    a version whose files were cleaned away.
    """
    version = _version_in_log(lake, table, as_of)
    if as_of is not None and not readable(lake, table, version):
        raise VersionNotAvailable(
            f"version {version} of table '{_name(table)}' is not available: its files have "
            f"been deleted; the oldest is {oldest_readable(lake, table)}{_because(lake, table)}"
        )
    return version


def oldest_readable(lake: Lake, table: Table | str) -> int:
    """The oldest version that can still be read: all later ones can too.

    What is cleaned away is what the oldest versions needed, so half of those left are looked at at
    a time.
    """
    versions = CommitLog(lake.path(table)).versions()
    return versions[bisect_left(versions, True, key=lambda v: readable(lake, table, v))]


def readable(lake: Lake, table: Table | str, version: int) -> bool:
    """True if every file of that version is still there; files of the newest version always are."""
    path = lake.path(table)
    now = set(_files(path))
    try:
        then = set(_files(path, version))
    except DeltaError:
        return False  # Its log begins after the version, and no checkpoint before it is left.
    gone = sorted(then - now)
    if not gone:
        return True
    store, _ = filesystem(path)
    files = store.get_file_info([filesystem(uri)[1] for uri in gone])
    return all(info.type == fs.FileType.File for info in files)


def _because(lake: Lake, table: Table | str) -> str:
    reason = kept_since_in_words(lake.path(table))
    return f"; {reason}" if reason else ""


def _name(table: Table | str) -> str:
    return table if isinstance(table, str) else table.name


def _files(path: str, version: int | None = None) -> list[str]:
    """The files of a version, as this process finds them."""
    uris = delta_table(path, version=version).file_uris()
    # delta-rs writes a space in a folder's name as %20, also where it gives a plain path.
    return [unquote(uri) for uri in uris] if is_local(path) else uris


def _version_in_log(lake: Lake, table: Table | str, as_of: int | datetime | None) -> int:
    """The version that was asked for, by the log alone."""
    log = CommitLog(lake.path(table))
    versions = log.versions()
    if not versions:
        raise VersionNotAvailable(
            f"table '{_name(table)}' does not exist yet: run its stream first"
        )
    if as_of is None:
        return versions[-1]
    if isinstance(as_of, datetime):
        moment = as_of if as_of.tzinfo else as_of.replace(tzinfo=UTC)
        for commit in log.backwards():
            if commit.at <= moment:
                return commit.version
        oldest = oldest_readable(lake, table)
        first = log.read(oldest)
        earliest = first.at.isoformat() if first else "unknown"
        raise VersionNotAvailable(
            f"table '{_name(table)}' at {moment.isoformat()} is not available; the earliest moment "
            f"is {earliest} (version {oldest}){_because(lake, table)}"
        )
    if not versions[0] <= as_of <= versions[-1]:
        raise VersionNotAvailable(
            f"version {as_of} of table '{_name(table)}' is not available; there are "
            f"{oldest_readable(lake, table)} to {versions[-1]}{_because(lake, table)}"
        )
    return as_of
