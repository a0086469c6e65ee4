"""Maintenance of every table of a deployment's streams, and of the platform's own tables."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from rivermark.backfill.erasure.record import ERASED_ROWS, ERASURES
from rivermark.backfill.pending import PENDING_AND_MERGES
from rivermark.backfill.registry import REPROCESSINGS
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.maintenance.compaction import TARGET_BYTES
from rivermark.lake.maintenance.maintain import MaintenanceResult, OldRows, maintain
from rivermark.model.errors import UnknownStream
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint.dead_letters import replayed_into
from rivermark.runtime.checkpoint.readers import readers_of
from rivermark.runtime.savepoint.fork import stands_on, with_forks
from rivermark.runtime.savepoint.store import beyond_the_rule, remove, savepoint_readers
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.runtime.supervision.reset import tables_of
from rivermark.settings import Settings

LOG = logging.getLogger("rivermark")
OWN: Final = (
    *(INGEST_FILES, STREAM_PROGRESS, REPROCESSINGS, PENDING_AND_MERGES),
    *(ERASURES, ERASED_ROWS),
)
"""Tables of the platform's own that grow."""


def kept_tables(topology: Topology) -> dict[str, Table]:
    """Every table that is maintained, by name.

    Declared ones, arrivals, replays of dead letters, the platform's own.
    """
    declared = [table for stream in topology.streams for table in tables_of(stream)]
    replays = [table for each in topology.streams if (table := replayed_into(each)) is not None]
    return {table.name: table for table in (*declared, *replays, *OWN)}


def upkeep(
    settings: Settings,
    topology: Topology,
    names: Collection[str] = (),
    *,
    run_id: str,
    now: datetime | None = None,
    dry_run: bool = False,
    target: int = TARGET_BYTES,
    on_done: Callable[[MaintenanceResult], None] | None = None,
) -> list[MaintenanceResult]:
    """Maintain the named tables, or all that exist, one after the other. Starts no Spark.

    Streams may run meanwhile. A table that cannot be looked after has the reason in `failed`, and
    the others are. Raises UnknownStream for a name that no table has.
    """
    lake, now = settings.lake(), now or datetime.now(UTC)
    topology = with_forks(lake, topology)
    tables = kept_tables(topology)
    goes = {} if names else _beyond_the_rule(settings, topology, now)
    if not dry_run:
        for stream, ids in goes.items():
            for each in ids:
                remove(lake, stream, each)
    written = {stream.tables[0].name: stream.name for stream in topology.streams}
    done: list[MaintenanceResult] = []
    for table in chosen(tables, names):
        if not lake.exists(table):
            continue
        writer = topology.writer(table)
        since = now - timedelta(days=settings.progress_days)
        try:
            kept = maintain(
                lake,
                table,
                now=now,
                run_id=run_id,
                readers=[
                    *readers_of(lake, topology, table),
                    *savepoint_readers(lake, topology, table),
                ],
                computed_with=writer.tables[0] if writer is not None else None,
                old_rows=OldRows("started_at", since, "stream")
                if table.name == STREAM_PROGRESS.name
                else None,
                dry_run=dry_run,
                target=target,
            )
        except Exception as error:
            LOG.warning("table '%s' could not be looked after", table.name, exc_info=True)
            reason = str(error).partition("\n")[0] or type(error).__name__
            kept = MaintenanceResult(table.name, dry_run, failed=reason)
        if old := goes.get(written.get(table.name, "")):
            gone = "would be" if dry_run else "were"
            kept.notes.append(f"savepoints {', '.join(old)} {gone} removed: no rule keeps them")
        done.append(kept)
        if on_done is not None:
            on_done(kept)
    return done


def _beyond_the_rule(settings: Settings, topology: Topology, now: datetime) -> dict[str, list[str]]:
    """The savepoints that go, by stream."""
    in_use = stands_on(settings.lake())
    return {
        stream.name: ids
        for stream in topology.streams
        if (ids := beyond_the_rule(settings, stream.name, in_use, now))
    }


def chosen(tables: dict[str, Table], names: Collection[str]) -> Sequence[Table]:
    """The tables of those names; all without one."""
    unknown = [name for name in names if name not in tables]
    if unknown:
        known = ", ".join(sorted(tables))
        raise UnknownStream(f"no table is named {unknown[0]!r}; there are: {known}")
    return [tables[name] for name in names] if names else list(tables.values())
