"""Progress of each stream in event time, by what it has committed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from rivermark.ingest.watermark_recovery import admission_watermark, recover_watermark
from rivermark.lake.lake import Lake
from rivermark.model.errors import CheckpointIncompatible
from rivermark.model.stream import AnyStream, Ingest, table_of
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint.watermarks import last_reached
from rivermark.settings import Settings


@dataclass(frozen=True)
class StreamWatermark:
    """A stream and its watermark (UTC); None before its first row."""

    stream: str
    at: datetime | None


def watermarks_of(settings: Settings, streams: Iterable[AnyStream]) -> dict[str, datetime]:
    """The watermark (UTC) of each of the streams that has one.

    By the commits of ingests and by checkpoints, as merging late rows and reprocessing read it: the
    records of batches are written later, are lost with a run that is killed, and expire.
    """
    lake = settings.lake()
    watermarks = {stream.name: _watermark(lake, stream) for stream in streams}
    return {name: at for name, at in watermarks.items() if at is not None}


def _watermark(lake: Lake, stream: AnyStream) -> datetime | None:
    if isinstance(stream, Ingest):
        return admission_watermark(lake, stream)
    try:
        return last_reached(lake, stream)
    except CheckpointIncompatible:
        return None  # An interrupted reset: nothing of it counts.


@dataclass(frozen=True)
class ProducerProgress:
    """The progress of a producer of an ingest (UTC), and its lead over the slowest.

    `heard` is when it brought its last valid row. `ahead_seconds` is None while nothing waits for
    it: it is idle, or brought no row yet.
    """

    name: str
    newest: datetime | None
    heard: datetime
    ahead_seconds: float | None


def producers_of(lake: Lake, ingest: Ingest) -> tuple[ProducerProgress, ...]:
    """The producers of an ingest with a watermark for each; without Spark."""
    rule = ingest.watermark
    producers = recover_watermark(lake, ingest).producers if rule else None
    if rule is None or producers is None:
        return ()
    skew = {name: ahead.total_seconds() for name, ahead in producers.skew(rule.idle).items()}
    return tuple(
        ProducerProgress(name, each.newest, each.heard, skew.get(name))
        for name, each in sorted(producers.known.items())
    )


def sources_of(topology: Topology, stream: AnyStream) -> tuple[Ingest, ...]:
    """Every ingest from which the stream's events come; static tables do not count."""
    if isinstance(stream, Ingest):
        return (stream,)
    sources: dict[str, Ingest] = {}
    for read in stream.reads:
        writer = topology.writer(table_of(read))
        upstream = sources_of(topology, writer) if writer is not None else ()
        sources |= {ingest.name: ingest for ingest in upstream}
    return tuple(sources.values())


def awaited_watermarks(
    topology: Topology, stream: AnyStream, reached: Mapping[str, datetime]
) -> tuple[StreamWatermark, ...]:
    """The sources that a stream's results wait for: itself for an ingest, else every ingest above.

    Dumps have no watermark: nothing waits for them.
    """
    live = [ingest.name for ingest in sources_of(topology, stream) if ingest.lateness is not None]
    return tuple(StreamWatermark(name, reached.get(name)) for name in sorted(live))
