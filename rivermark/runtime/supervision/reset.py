"""Starting streams over: a new checkpoint, and tables that are filled again from their inputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from rivermark.ingest.plan import BatchPlanner, plan_table
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.archive import archive_table
from rivermark.lake.delta import delta_table
from rivermark.lake.locks import commit_lock
from rivermark.model.errors import RivermarkError
from rivermark.model.source import Split
from rivermark.model.stream import AnyStream, Ingest, table_of
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.runtime.checkpoint.generation import reset_generation
from rivermark.runtime.checkpoint.identity import forget_identity
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from rivermark.runtime.supervision.lease import Lease
from rivermark.settings import Settings
from rivermark.sinks.output import archive_sinks, side_tables


@dataclass(frozen=True)
class ResetReport:
    """The generation that each stream begins, and where its former tables lie now."""

    generations: dict[str, int]
    removed: tuple[str, ...]


def resets_with(topology: Topology, stream: AnyStream) -> tuple[AnyStream, ...]:
    """The stream and all that read it by stream, however far, in dependency order.

    They cannot stay: rows that come a second time would be counted a second time.
    """
    tables = {t.name for t in stream.tables}
    affected = [stream]
    for other in topology.streams:
        if isinstance(other, Ingest) or other.name == stream.name:
            continue
        if any(table_of(read).name in tables for read in other.reads):
            affected.append(other)
            tables |= {t.name for t in other.tables}
    return tuple(affected)


def tables_of(stream: AnyStream) -> tuple[Table, ...]:
    """Every table of a stream alone, with an ingest's plan and the tombstones of an upsert."""
    if isinstance(stream, Ingest):
        return (*stream.tables, plan_table(stream))
    return (*stream.tables, *side_tables(stream))


def reset(
    settings: Settings,
    topology: Topology,
    stream: AnyStream,
    *,
    run_id: str,
    with_tables: bool = False,
) -> ResetReport:
    """Begin a new generation of the stream and of all that read it; their tables are put aside.

    The next run fills the tables again: a derived stream from its inputs as they are, an ingest
    from what its source still holds. As that may be less than was read once, an ingest is reset
    only `with_tables`. Raises StreamAlreadyRunning while any of them runs.
    """
    check_resettable(stream, with_tables=with_tables)
    streams = resets_with(topology, stream)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    generations: dict[str, int] = {}
    removed: list[str] = []
    with ExitStack() as leases:
        for each in streams:
            leases.enter_context(Lease(settings.state, each.name).acquire(run_id))
        # Readers first: after a kill in between they read the old source again, from its start.
        for each in reversed(streams):
            made = reset_generation(
                settings.lake(),
                each,
                settings.shuffle_partitions,
                partial(_clear, settings, each, stamp, removed),
            )
            generations[each.name] = made.number
            _forget(settings, each, run_id)
    return ResetReport(generations, tuple(removed))


def check_resettable(stream: AnyStream, *, with_tables: bool) -> None:
    """Raise RivermarkError for an ingest whose tables are to stay."""
    if isinstance(stream, Ingest) and not with_tables:
        raise RivermarkError(
            f"'{stream.name}' would read its source from the start, into tables that hold "
            "those rows already. To archive the tables too, and keep of the past only what the "
            f"source still holds: rivermark reset {stream.name} --with-tables"
        )


def accept_state(settings: Settings, stream: AnyStream, *, run_id: str) -> bool:
    """Let the stream's next start take its state as made by what is declared then.

    Returns False where there is no record of what made it. Raises StreamAlreadyRunning while the
    stream runs.
    """
    with Lease(settings.state, stream.name).acquire(run_id):
        return forget_identity(settings.lake(), stream)


def accept_loss(settings: Settings, ingest: Ingest, *, run_id: str) -> Sequence[Split]:
    """Plan what is gone from the source as lost; returns what was planned.

    Raises StreamAlreadyRunning while the stream runs.
    """
    with Lease(settings.state, ingest.name).acquire(run_id):
        planner = BatchPlanner(settings.lake(), settings.landing_root, ingest, run_id)
        try:
            return planner.accept_loss()
        finally:
            planner.source.close()


def _clear(settings: Settings, stream: AnyStream, stamp: str, removed: list[str]) -> None:
    lake = settings.lake()
    moved = [archive_table(lake, table, stamp) for table in tables_of(stream)]
    moved += archive_sinks(lake, stream, stamp)
    if isinstance(stream, Ingest) and lake.exists(INGEST_FILES):
        path = lake.path(INGEST_FILES)
        with commit_lock(path):
            # A stream's name is checked on declaration and holds no quote.
            delta_table(path).delete(f"stream = '{stream.name}'")
    removed += [place for place in moved if place is not None]


def _forget(settings: Settings, stream: AnyStream, run_id: str) -> None:
    """Drop what was reported of the former tables: closed days, the last heartbeat's watermark."""
    ClosedDays(settings.lake(), settings.state).forget(stream.name)
    HeartbeatStore(settings.state).beat(
        Heartbeat(
            stream=stream.name, group=stream.group, run_id=run_id, pid=os.getpid(), state="stopped"
        )
    )
