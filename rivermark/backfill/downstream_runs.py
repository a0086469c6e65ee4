"""What lies downstream of days that changed, computed again in the order of lineage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from uuid import uuid4

from pyspark.sql import SparkSession

from rivermark.backfill.affected_days import all_reached, of_difference, whole_days
from rivermark.backfill.downstream import Below, compute_below
from rivermark.backfill.pending import owe, settle
from rivermark.backfill.recompute import OnStep, silent
from rivermark.backfill.result import Reprocessing
from rivermark.lake.lake import Lake
from rivermark.model.errors import PartitionStillOpen, VersionNotAvailable
from rivermark.model.stream import Stream
from rivermark.model.topology import Topology
from rivermark.quality.errors import PublicationBlocked
from rivermark.settings import Settings


@dataclass
class Followed:
    """What was computed again downstream, and what could not be, with the reason."""

    done: list[Reprocessing] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)


@contextmanager
def promised(
    lake: Lake, topology: Topology, stream: Stream, days: Iterable[date], run_id: str
) -> Iterator[None]:
    """Within this the days of a stream are replaced and followed up: all of it, in the end.

    Where it is killed, or fails in the middle, a second try finds the first table as it should be
    and would follow nothing. So all days below that may differ are written down before; the next
    fold computes them, and replaces those that do differ.
    """
    chosen = list(days)
    changed = {table.name: whole_days(table, chosen) for table in stream.tables if table.days}
    name, below = uuid4().hex, all_reached(topology, changed)
    if not below:
        yield
        return
    owe(lake, name, below, run_id)
    try:
        yield
    except (PartitionStillOpen, VersionNotAvailable, PublicationBlocked):
        settle(lake, name, {}, run_id)  # Refused before the first row moved.
        raise
    settle(lake, name, {}, run_id)


def follow_up(
    spark: SparkSession,
    settings: Settings,
    topology: Topology,
    cause: Reprocessing,
    *,
    run_id: str,
    on_step: OnStep = silent,
    on_done: Callable[[Reprocessing], None] = lambda _: None,
) -> Followed:
    """Compute again, stream after stream, the days downstream that a reprocessing reaches.

    Only streams of which an input changed are computed, and only days that differ are replaced:
    where nothing differs, the following stops. Days that are still open are owed, as after a fold,
    and so is everything where this is killed: the next fold computes them.
    """
    lake, found = settings.lake(), Followed()
    changed = {
        name: of_difference(outcome.difference)
        for name, outcome in cause.tables.items()
        if not outcome.difference.same
    }
    if not changed:
        return found

    def keep(done: Reprocessing) -> None:
        found.done.append(done)
        on_done(done)

    owe(lake, cause.id, all_reached(topology, changed), run_id)
    below = compute_below(
        settings,
        topology,
        lambda: spark,
        changed,
        {},
        because=cause.id,
        run_id=run_id,
        refreshed=True,
        tell=on_step,
        on_done=keep,
    )
    settle(lake, cause.id, below.owed, run_id)
    found.left = reasons(below)
    return found


def reasons(below: Below) -> dict[str, str]:
    """Why streams below were not computed, or not all of their days."""
    found = {
        name: f"{', '.join(map(str, sorted(days)))} still open; the fold after it is closed "
        "computes it (rivermark fold-late)"
        for name, days in below.owed.items()
    }
    found |= {
        name: "it is not kept by days: what it made of the days before stays; to fill it anew: "
        f"rivermark reset {name}"
        for name in below.fixed
    }
    return found | below.blocked


def named_follow_ups(topology: Topology, cause: Reprocessing) -> list[str]:
    """The names of the streams that a replacement leaves behind, in the order to compute them."""
    changed = [name for name, outcome in cause.tables.items() if not outcome.difference.same]
    return [stream.name for stream in topology.downstream(changed)]
