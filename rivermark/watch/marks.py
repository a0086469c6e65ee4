"""How far each stream has come in event time, from its batches' records; and who stands still."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from deltalake import DeltaTable

from rivermark.runtime.progress import STREAM_PROGRESS
from rivermark.settings import Settings
from rivermark.stream import AnyStream, Ingest, Stream, table_of
from rivermark.topology import Topology
from rivermark.watch.claim import Answer
from rivermark.watch.query import ask

STANDS_STILL: Final = timedelta(minutes=30)
"""An input so far behind its fastest neighbour, beyond their lateness, holds their results back."""

# The newest generation only: a reset stream counts from nothing again.
NEWEST: Final = """
SELECT stream, max(watermark) AS watermark FROM progress
WHERE (stream, generation) IN (SELECT (stream, max(generation)) FROM progress GROUP BY stream)
GROUP BY stream
"""


@dataclass(frozen=True)
class Mark:
    """An input of a stream and the moment (UTC) that its watermark has reached; None for none."""

    stream: str
    at: datetime | None


def marks(settings: Settings) -> dict[str, datetime]:
    """The newest watermark (UTC) of each stream that has one."""
    lake = settings.lake()
    if not lake.exists(STREAM_PROGRESS):
        return {}
    progress = DeltaTable(lake.path(STREAM_PROGRESS)).to_pyarrow_dataset()
    found = ask(NEWEST, {"progress": progress})
    return {r["stream"]: r["watermark"].astimezone(UTC) for r in found if r["watermark"]}


def inputs_with_marks(
    topology: Topology, stream: AnyStream, reached: dict[str, datetime]
) -> tuple[Mark, ...]:
    """The sources that a stream's results wait for: itself for an ingest, else every ingest above.

    Dumps have no watermark: nothing waits for them.
    """
    if isinstance(stream, Ingest):
        return () if stream.lateness is None else (Mark(stream.name, reached.get(stream.name)),)
    found = {i.name: i for i in _sources(topology, stream) if i.lateness is not None}
    return tuple(Mark(name, reached.get(name)) for name in sorted(found))


def keeps_pace(settings: Settings, topology: Topology, stream: Stream) -> Answer:
    """Whether no source of the stream stands still while another goes on (case B005).

    A join or a union waits for the slowest of its inputs; this names it, and how far it is behind.
    """
    found = inputs_with_marks(topology, stream, marks(settings))
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


def _sources(topology: Topology, stream: AnyStream) -> Iterable[Ingest]:
    """Every ingest from which events flow to the stream; tables that are looked up do not count."""
    if isinstance(stream, Ingest):
        yield stream
        return
    for read in stream.reads:
        writer = topology.writer(table_of(read))
        if writer is not None:
            yield from _sources(topology, writer)
