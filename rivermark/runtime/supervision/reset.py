"""Starting streams over: a new checkpoint, and tables that are filled again from their inputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rivermark.ingest.plan import BatchPlanner, lost_splits, plan_table
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.archive import archive_table
from rivermark.lake.delta import delta_table
from rivermark.lake.locks import commit_lock
from rivermark.model.errors import RivermarkError
from rivermark.model.source import Split
from rivermark.model.stream import AnyStream, Ingest, Stream, table_of
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.runtime.checkpoint.generation import read_generation, reset_generation
from rivermark.runtime.checkpoint.identity import forget_identity
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from rivermark.runtime.supervision.lease import Lease
from rivermark.settings import Settings
from rivermark.sinks.output import archive_sinks, side_tables
from rivermark.sinks.real_time import REAL_TIME, real_time_of

if TYPE_CHECKING:
    from rivermark.runtime.checkpoint.topic_offsets import TopicOffsets


class Gap(NamedTuple):
    """Input that is gone: its name, and the reason."""

    name: str
    reason: str


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


def lost_input(settings: Settings, stream: AnyStream) -> Sequence[Gap]:
    """Input of a stream that is gone before it was read; writes nothing.

    Raises:
        RivermarkError: the stream reads tables alone.
    """
    if isinstance(stream, Ingest):
        return _gaps(lost_splits(settings.lake(), settings.landing_root, stream))
    offsets = _in_real_time(settings, stream)
    return [Gap(each.name, each.lost or "") for each in offsets.lost()] if offsets else ()


def accept_loss(settings: Settings, stream: AnyStream, *, run_id: str) -> Sequence[Gap]:
    """Go on behind what is gone; an ingest plans it as lost. Returns what it was.

    Raises StreamAlreadyRunning while the stream runs, RivermarkError where it reads tables alone.
    """
    with Lease(settings.state, stream.name).acquire(run_id):
        if not isinstance(stream, Ingest):
            offsets = _in_real_time(settings, stream)
            return (
                [Gap(each.name, each.lost or "") for each in offsets.accept_loss()]
                if offsets
                else ()
            )
        planner = BatchPlanner(settings.lake(), settings.landing_root, stream, run_id)
        try:
            return _gaps(planner.accept_loss())
        finally:
            planner.source.close()


def _gaps(splits: Sequence[Split]) -> Sequence[Gap]:
    return [Gap(split.name, split.reason or "") for split in splits]


def _in_real_time(settings: Settings, stream: Stream) -> TopicOffsets | None:
    """The position of a stream's query in real time; None before its first start."""
    real_time = real_time_of(stream)
    if real_time is None:
        raise RivermarkError(
            f"'{stream.name}' reads tables, not a source; see: rivermark status {stream.name}"
        )
    lake = settings.lake()
    generation = read_generation(lake, stream)
    if generation is None:
        return None
    # Loads Kafka's client, which other streams do not need.
    from rivermark.runtime.checkpoint.topic_offsets import TopicOffsets

    checkpoint = f"{lake.checkpoint(stream.name, generation.number)}/{REAL_TIME}"
    return TopicOffsets(lake, stream.name, real_time.ingest, checkpoint)


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
