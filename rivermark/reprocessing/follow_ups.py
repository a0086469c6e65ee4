"""What lies downstream of days that changed, computed again in the order of lineage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from zoneinfo import ZoneInfo

from pyspark.sql import SparkSession

from rivermark.errors import PartitionStillOpen, RivermarkError
from rivermark.lake.lake import Lake
from rivermark.reprocessing.report import Reprocessing
from rivermark.reprocessing.reprocess import OnStep, Order, replace, silent
from rivermark.runtime.closing import last_closed
from rivermark.runtime.watermarks import last_reached
from rivermark.settings import Settings
from rivermark.stream import Ingest, Stream
from rivermark.topology import Topology


@dataclass
class Followed:
    """What was computed again downstream, and what could not be, with the reason."""

    done: list[Reprocessing] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)


def downstream(topology: Topology, stream: Stream) -> list[Stream]:
    """The streams that read its tables, directly or not, each after those that it reads."""
    reached = {stream.name}
    found = []
    for each in topology.streams:
        above = {upstream.name for upstream in topology.upstreams(each)}
        if isinstance(each, Stream) and above & reached:
            found.append(each)
            reached.add(each.name)
    return found


def follow_up(
    spark: SparkSession,
    settings: Settings,
    topology: Topology,
    cause: Reprocessing,
    *,
    run_id: str,
    on_step: OnStep = silent,
    on_done: Callable[[Reprocessing], None] | None = None,
) -> Followed:
    """Compute again, stream after stream, the days downstream that a reprocessing reaches.

    Only streams of which an input changed are computed, and only the days that its changed days
    touch: where nothing differs, the following stops.
    """
    found = Followed()
    lake = settings.lake()
    changed = {cause.stream: cause.days_that_differ()}
    origin = topology.named(cause.stream)
    assert isinstance(origin, Stream)  # noqa: S101 - an ingest is never reprocessed
    for stream in downstream(topology, origin):
        moments = changed_moments(topology, stream, changed)
        if moments is None:
            continue
        try:
            first, last = clipped(lake, stream, *reached_days(stream, *moments))
            order = Order(
                stream=stream,
                first=first,
                last=last,
                run_id=run_id,
                because=cause.id,
                on_step=on_step,
            )
        except RivermarkError as error:
            found.left[stream.name] = str(error)
            continue
        done = replace(spark, settings, order)
        found.done.append(done)
        if on_done is not None:
            on_done(done)
        changed[stream.name] = done.days_that_differ()
    return found


def changed_moments(
    topology: Topology, stream: Stream, changed: Mapping[str, list[date]]
) -> tuple[datetime, datetime] | None:
    """From when to when (UTC) rows of the stream's inputs changed; None where none did."""
    bounds = [
        above.days.bounds(days[0], days[-1])
        for above in topology.upstreams(stream)
        if (days := changed.get(above.name)) and above.days is not None
    ]
    return (min(b[0] for b in bounds), max(b[1] for b in bounds)) if bounds else None


def reached_days(stream: Stream, start: datetime, end: datetime) -> tuple[date, date]:
    """The first and last day of the stream that changes of those moments may touch."""
    if stream.days is None:
        raise RivermarkError(
            f"'{stream.name}' is not kept by days: what it made of the days before stays; to fill "
            f"it anew: rivermark reset {stream.name}"
        )
    zone = ZoneInfo(stream.days.zone)
    # The end is the first moment of the next day: a window may be stamped with it.
    first = (start - stream.margin).astimezone(zone).date()
    return max(stream.days.start, first), (end + stream.margin).astimezone(zone).date()


def clipped(lake: Lake, stream: Stream, first: date, last: date) -> tuple[date, date]:
    """The days of the range that the stream has finished; PartitionStillOpen where none is."""
    if stream.kind != "append":
        return first, last
    watermark = last_reached(lake, stream)
    closed = last_closed(stream, watermark) if watermark is not None else None
    if closed is None or closed < first:
        raise PartitionStillOpen(
            f"'{stream.name}' has not finished {first.isoformat()} yet: what its live stream has "
            "read of it stays as it was; compute the day again when it is closed"
        )
    return first, min(last, closed)


def named_follow_ups(topology: Topology, cause: Reprocessing) -> list[str]:
    """The names of the streams that a replacement leaves behind, in the order to compute them."""
    if cause.same:
        return []
    origin = topology.named(cause.stream)
    if isinstance(origin, Ingest):
        return []
    return [stream.name for stream in downstream(topology, origin)]
