"""Follow-ups of a reprocessing downstream: recorded before it, recomputed after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from uuid import uuid4

from rivermark.backfill.affected_days import Changed, all_affected_days
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.downstream import DownstreamResult, recompute_downstream
from rivermark.backfill.pending import add_pending, resolve_pending
from rivermark.backfill.result import Reprocessing
from rivermark.model.errors import PartitionStillOpen, VersionNotAvailable
from rivermark.model.stream import Stream
from rivermark.model.topology import Topology
from rivermark.quality.errors import PublicationBlocked


@dataclass
class FollowUps:
    """The streams recomputed downstream, and those that could not be, with the reason by stream."""

    done: list[Reprocessing] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)


@contextmanager
def pending_downstream(
    context: BackfillContext, stream: Stream, days: Iterable[date]
) -> Iterator[None]:
    """Within this, days of a stream are replaced and followed up: all of it, in the end.

    Where it is killed or fails in the middle, a second try finds the first table as it should be
    and would follow nothing. So all days downstream that may differ are recorded before; the next
    merge of late rows recomputes them, and replaces those that do differ.
    """
    chosen = list(days)
    changed = {t.name: Changed.whole_days(t, chosen) for t in stream.tables if t.days}
    cause, affected = uuid4().hex, all_affected_days(context.topology, changed)
    if not affected:
        yield
        return
    add_pending(context.lake, cause, affected, context.run_id)
    try:
        yield
    except (PartitionStillOpen, VersionNotAvailable, PublicationBlocked):
        resolve_pending(context.lake, [cause], None, context.run_id)  # No row has moved.
        raise
    resolve_pending(context.lake, [cause], None, context.run_id)


def follow_up(context: BackfillContext, cause: Reprocessing) -> FollowUps:
    """Recompute the days downstream that a reprocessing affects.

    Only streams of which an input changed are computed, and only days that differ are replaced:
    where nothing differs, the following stops. Days that are still open stay pending, and so does
    everything where this is killed: the next merge of late rows recomputes them.
    """
    changed = {
        name: Changed.where_different(outcome.difference)
        for name, outcome in cause.tables.items()
        if not outcome.difference.same
    }
    if not changed:
        return FollowUps()
    done: list[Reprocessing] = []

    def keep(each: Reprocessing) -> None:
        done.append(each)
        context.on_done(each)

    affected = all_affected_days(context.topology, changed)
    add_pending(context.lake, cause.id, affected, context.run_id)
    result = recompute_downstream(
        replace(context, on_done=keep), changed, {}, because=cause.id, refresh=True
    )
    left = (uuid4().hex, result.pending)
    resolve_pending(context.lake, [cause.id], left, context.run_id)
    return FollowUps(done, reasons(result))


def reasons(result: DownstreamResult) -> dict[str, str]:
    """Reasons why streams downstream were not recomputed, or not all of their days."""
    still_open = {
        name: f"{', '.join(map(str, sorted(days)))} still open; the merge of late rows after it is "
        "closed recomputes it (rivermark merge-late)"
        for name, days in result.pending.items()
    }
    not_by_days = {
        name: "it is not kept by days: what it made of the days before stays; to fill it again: "
        f"rivermark reset {name}"
        for name in result.unchanged
    }
    return still_open | not_by_days | result.blocked


def streams_behind(topology: Topology, cause: Reprocessing) -> list[str]:
    """The names of the streams that a replacement leaves behind, in the order to compute them."""
    changed = [name for name, outcome in cause.tables.items() if not outcome.difference.same]
    return [stream.name for stream in topology.downstream(changed)]
