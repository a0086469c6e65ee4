"""For how long each version of a table can be read, as the table's Delta properties."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta

from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.log import CommitLog
from rivermark.model.table import Table


def retention_of(lake: Lake, table: Table) -> timedelta:
    """For how long each version of a table stays readable: as declared, or as in its lake."""
    return table.retention or lake.retention


def retention_properties(retention: timedelta) -> dict[str, str]:
    """The Delta properties that follow from a retention.

    Log and files are kept for the same span. Only maintenance cleans, because it alone knows what
    the streams that read the table still need.
    """
    days, rest = divmod(retention, timedelta(days=1))
    seconds = max(1, round(retention.total_seconds()))
    text = f"interval {seconds} seconds" if rest else f"interval {days} days"
    return {
        "delta.logRetentionDuration": text,
        "delta.deletedFileRetentionDuration": text,
        "delta.enableExpiredLogCleanup": "false",
    }


def apply_retention(lake: Lake, table: Table) -> bool:
    """Bring a table's properties in line with its retention; returns whether they changed."""
    path = lake.path(table)
    wanted = {**retention_properties(retention_of(lake, table)), **table.properties}
    with commit_lock(path):
        delta = delta_table(path)
        configured = delta.metadata().configuration
        changed = {k: v for k, v in wanted.items() if configured.get(k) != v}
        if changed:
            delta.alter.set_table_properties(
                changed, commit_properties=commit_properties({"upkeep": "promise"})
            )
            write_checksum(path, delta.version())
    return bool(changed)


def oldest_retained(lake: Lake, table: Table, now: datetime) -> int:
    """The version that was current when the retained span began; the first one of a young table.

    Where the log begins later than that, the oldest version that can still be read.
    """
    since = now.astimezone(UTC) - retention_of(lake, table)
    log = CommitLog(lake.path(table))
    first = 0 if log.complete() else min(log.checkpoints(), default=0)
    versions = [version for version in log.versions() if version >= first]
    before = bisect_right(versions, since, key=lambda version: _at(log, version))
    return versions[max(0, before - 1)] if versions else first


def _at(log: CommitLog, version: int) -> datetime:
    commit = log.read(version)
    assert commit is not None  # noqa: S101 - it was listed, and only maintenance deletes
    return commit.at
