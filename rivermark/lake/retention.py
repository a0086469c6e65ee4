"""For how long each version of a table can be read, as the table's Delta properties.

A retention that is made longer cannot bring back what the shorter one let go: the table notes since
when its versions were kept, and the longer span grows from there.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.log import CommitLog
from rivermark.model.table import Table

FILES: Final = "delta.deletedFileRetentionDuration"
LOG: Final = "delta.logRetentionDuration"
CLEANUP: Final = "delta.enableExpiredLogCleanup"
KEPT_SINCE: Final = "rivermark.versionsKeptSince"
"""Property with the moment from which on versions are kept, where the retention was longer than
their life when it was set."""
INTERVAL: Final = re.compile(r"interval (\d+) (second|day)s?")


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
        LOG: text,
        FILES: text,
        CLEANUP: "false",
    }


def apply_retention(lake: Lake, table: Table, now: datetime | None = None) -> bool:
    """Bring a table's properties in line with its retention; returns whether they changed."""
    path, now = lake.path(table), now or datetime.now(UTC)
    retention = retention_of(lake, table)
    wanted = {**retention_properties(retention), **table.properties}
    with commit_lock(path):
        delta = delta_table(path)
        configured = delta.metadata().configuration
        changed = {k: v for k, v in wanted.items() if configured.get(k) != v}
        before = _shortest(configured)
        if before is not None and before < retention:
            since = max(now - before, kept_since(configured) or now - before)
            changed[KEPT_SINCE] = since.astimezone(UTC).isoformat()
        if changed:
            delta.alter.set_table_properties(
                changed,
                raise_if_not_exists=False,
                commit_properties=commit_properties({"upkeep": "promise"}),
            )
            write_checksum(path, delta.version())
    return bool(changed)


def keep_from(path: str, now: datetime) -> None:
    """Note that versions of a table are kept from a moment on: older ones lost files by intent."""
    with commit_lock(path):
        delta = delta_table(path)
        delta.alter.set_table_properties(
            {KEPT_SINCE: now.astimezone(UTC).isoformat()},
            raise_if_not_exists=False,
            commit_properties=commit_properties({"upkeep": "promise"}),
        )
        write_checksum(path, delta.version())


def kept_since(configured: Mapping[str, str]) -> datetime | None:
    """Since when the versions of a table are kept, by its properties; None where no note is."""
    text = configured.get(KEPT_SINCE)
    return datetime.fromisoformat(text) if text else None


def kept_since_in_words(path: str) -> str:
    """The moment since which versions are kept, with the reason; empty where it is not noted."""
    since = kept_since(delta_table(path).metadata().configuration)
    if since is None:
        return ""
    return (
        f"versions are kept since {since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC: a shorter "
        "retention, or an erasure, took those before"
    )


def _shortest(configured: Mapping[str, str]) -> timedelta | None:
    """The retention that the table had until now: the shorter one of its log's and its files'."""
    spans = [m for name in (LOG, FILES) if (m := INTERVAL.fullmatch(configured.get(name, "")))]
    return min((timedelta(**{f"{m[2]}s": int(m[1])}) for m in spans), default=None)


def oldest_retained(lake: Lake, table: Table, now: datetime) -> int:
    """The version that was current when the retained span began; the first one of a young table.

    The span is not older than what was kept when the retention became as long. Where the log begins
    later than that, the oldest version that can still be read.
    """
    path, retention = lake.path(table), retention_of(lake, table)
    configured = delta_table(path).metadata().configuration
    # A longer one counts from the maintenance on that writes it into the table.
    since = now.astimezone(UTC) - min(retention, _shortest(configured) or retention)
    since = max(since, kept_since(configured) or since)
    log = CommitLog(path)
    first = log.first_readable()
    versions = [version for version in log.versions() if version >= first]
    before = bisect_right(versions, since, key=lambda version: _at(log, version))
    return versions[max(0, before - 1)] if versions else first


def _at(log: CommitLog, version: int) -> datetime:
    commit = log.read(version)
    assert commit is not None  # noqa: S101 - it was listed, and only maintenance deletes
    return commit.at
