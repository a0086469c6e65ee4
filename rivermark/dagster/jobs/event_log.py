"""Dagster's event log, pruned while streams report each minute.

Dagster 1.13 prunes ticks and nothing else, and deletes events by whole runs only; a stream's run is
never over. So this works on its tables directly (`dagster._core.storage.event_log`), in SQLite and
PostgreSQL alike.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import dagster as dg
import sqlalchemy as sa
from dagster._core.storage.event_log.schema import AssetEventTagsTable, SqlEventLogStorageTable
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage

EVENTS: Final = SqlEventLogStorageTable.c
REPORTS: Final = (
    dg.DagsterEventType.ASSET_MATERIALIZATION.value,
    dg.DagsterEventType.ASSET_OBSERVATION.value,
)
EVALUATION: Final = dg.DagsterEventType.ASSET_CHECK_EVALUATION.value
AT_ONCE: Final = 5000


def prune_events(
    instance: dg.DagsterInstance, *, older_than_days: float, dry_run: bool = False
) -> int:
    """Delete old reports and check evaluations; returns how many.

    Kept are: what is younger, days (partitions), and the latest report of each table, so that its
    page shows when it was last written. A check's result has a record of its own, which stays.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return 0
    before = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=older_than_days)
    with storage.index_connection() as index:
        old = index.execute(sa.select(EVENTS.id, EVENTS.run_id).where(_old(before))).fetchall()
        if dry_run:
            return len(old)
        _delete(index, [row[0] for row in old])
    # In SQLite each run has a file of its own, with the same events under other numbers.
    for run_id in sorted({str(row[1]) for row in old}):
        with storage.run_connection(run_id) as shard:
            ids = shard.execute(sa.select(EVENTS.id).where(_old(before), EVENTS.run_id == run_id))
            _delete(shard, [row[0] for row in ids.fetchall()])
    return len(old)


def _old(before: datetime) -> Any:
    """Reports without a day and check evaluations from before that moment (UTC), but the latest."""
    reports = EVENTS.dagster_event_type.in_(REPORTS) & EVENTS.partition.is_(None)
    latest = (
        sa.select(sa.func.max(EVENTS.id))
        .where(reports)
        .group_by(EVENTS.asset_key, EVENTS.dagster_event_type)
    )
    evaluations = EVENTS.dagster_event_type == EVALUATION
    return (EVENTS.timestamp < before) & (evaluations | (reports & EVENTS.id.not_in(latest)))


def _delete(connection: Any, ids: list[int]) -> None:
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        tags = AssetEventTagsTable.c.event_id.in_(some)
        connection.execute(AssetEventTagsTable.delete().where(tags))
        connection.execute(SqlEventLogStorageTable.delete().where(EVENTS.id.in_(some)))
