"""The promise that every version of a table's last days can be read, and what keeps it."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta

from deltalake import DeltaTable

from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.commit_metadata import noted
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.log import CommitLog
from rivermark.model.table import Table


def promise_of(lake: Lake, table: Table) -> timedelta:
    """For how long each version of the table stays readable: its own word, or the lake's."""
    return table.promise or lake.promise


def retention(promise: timedelta) -> dict[str, str]:
    """The Delta properties that follow from a promise.

    Log and files are kept for the same span. Writers clean nothing: only upkeep does, because it
    alone knows what the streams that read the table still need.
    """
    days, rest = divmod(promise, timedelta(days=1))
    seconds = max(1, round(promise.total_seconds()))
    text = f"interval {seconds} seconds" if rest else f"interval {days} days"
    return {
        "delta.logRetentionDuration": text,
        "delta.deletedFileRetentionDuration": text,
        "delta.enableExpiredLogCleanup": "false",
    }


def keep_promise(lake: Lake, table: Table) -> bool:
    """Bring an existing table's properties in line with the promise; tells whether they changed."""
    path = lake.path(table)
    wanted = {**retention(promise_of(lake, table)), **table.properties}
    with commit_lock(path):
        found = DeltaTable(path)
        there = found.metadata().configuration
        changed = {k: v for k, v in wanted.items() if there.get(k) != v}
        if changed:
            found.alter.set_table_properties(
                changed, commit_properties=noted({"upkeep": "promise"})
            )
            write_checksum(path, found.version())
    return bool(changed)


def oldest_promised(lake: Lake, table: Table, now: datetime) -> int:
    """The version that was current when the promised span began; the first one of a young table.

    Where the log begins later than that, the oldest version that it can still give.
    """
    since = now.astimezone(UTC) - promise_of(lake, table)
    log = CommitLog(lake.path(table))
    first = 0 if log.complete() else min(log.checkpoints(), default=0)
    versions = [version for version in log.versions() if version >= first]
    before = bisect_right(versions, since, key=lambda version: _at(log, version))
    return versions[max(0, before - 1)] if versions else first


def _at(log: CommitLog, version: int) -> datetime:
    found = log.read(version)
    assert found is not None  # noqa: S101 - it was listed, and only upkeep deletes
    return found.at
