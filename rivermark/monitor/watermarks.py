"""How far each stream has come in event time, by what it has committed; and who stands still."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from rivermark.ingest.watermark_recovery import admission_watermark
from rivermark.lake.lake import Lake
from rivermark.model.errors import CheckpointIncompatible
from rivermark.model.stream import AnyStream, Ingest, Stream, table_of
from rivermark.model.topology import Topology
from rivermark.monitor.checks.check import Answer
from rivermark.runtime.checkpoint.watermarks import last_reached
from rivermark.settings import Settings

STANDS_STILL: Final = timedelta(minutes=30)
"""An input so far behind its fastest neighbour, beyond their lateness, holds their results back."""


@dataclass(frozen=True)
class Mark:
    """A stream and the moment (UTC) that its watermark has reached; None for none."""

    stream: str
    at: datetime | None


def marks(settings: Settings, streams: Iterable[AnyStream]) -> dict[str, datetime]:
    """The watermark (UTC) of each of the streams that has one.

    By the commits of the door and the checkpoints, as folding and reprocessing see it: the records
    of batches are written later, are lost with a run that is killed, and end some day.
    """
    lake = settings.lake()
    found = {stream.name: _reached(lake, stream) for stream in streams}
    return {name: at for name, at in found.items() if at is not None}


def _reached(lake: Lake, stream: AnyStream) -> datetime | None:
    if isinstance(stream, Ingest):
        return admission_watermark(lake, stream)
    try:
        return last_reached(lake, stream)
    except CheckpointIncompatible:
        return None  # A reset was broken off: nothing of it counts.


def sources_of(topology: Topology, stream: AnyStream) -> tuple[Ingest, ...]:
    """Every ingest from which the stream's events come; tables that are looked up do not count."""
    if isinstance(stream, Ingest):
        return (stream,)
    found: dict[str, Ingest] = {}
    for read in stream.reads:
        writer = topology.writer(table_of(read))
        above = sources_of(topology, writer) if writer is not None else ()
        found |= {ingest.name: ingest for ingest in above}
    return tuple(found.values())


def inputs_with_marks(
    topology: Topology, stream: AnyStream, reached: dict[str, datetime]
) -> tuple[Mark, ...]:
    """The sources that a stream's results wait for: itself for an ingest, else every ingest above.

    Dumps have no watermark: nothing waits for them.
    """
    if isinstance(stream, Ingest):
        return () if stream.lateness is None else (Mark(stream.name, reached.get(stream.name)),)
    found = sorted(i.name for i in sources_of(topology, stream) if i.lateness is not None)
    return tuple(Mark(name, reached.get(name)) for name in found)


def keeps_pace(settings: Settings, topology: Topology, stream: Stream) -> Answer:
    """Whether no source of the stream stands still while another goes on (case B005).

    A join or a union waits for the slowest of its inputs; this names it, and how far it is behind.
    """
    found = inputs_with_marks(topology, stream, marks(settings, sources_of(topology, stream)))
    known = [(m.stream, m.at) for m in found if m.at is not None]
    silent = [m.stream for m in found if m.at is None]
    if not known:
        return Answer(holds=True, sentence="no input has a watermark yet", numbers={"inputs": 0})
    newest = max(at for _, at in known)
    behind = {name: newest - at for name, at in known if newest - at > STANDS_STILL}
    slowest, lag = max(((n, newest - at) for n, at in known), key=lambda found: found[1])
    waits = [*sorted(behind), *silent]
    told = ", ".join(f"{name} at {at:%Y-%m-%d %H:%M}" for name, at in known)
    return Answer(
        holds=not waits,
        sentence=(
            f"{told}{''.join(f', {name} without a row yet' for name in silent)}; "
            + (f"results wait for {', '.join(waits)}" if waits else "no input stands still")
        ),
        numbers={
            "inputs": len(found),
            "inputs_behind": len(waits),
            "most_seconds_behind": lag.total_seconds(),
        },
        offenders=tuple(
            {"input": name, "watermark": at.isoformat(), "seconds_behind": lag_of.total_seconds()}
            for name, at in known
            for lag_of in [newest - at]
            if name in behind or (name == slowest and waits)
        ),
    )
