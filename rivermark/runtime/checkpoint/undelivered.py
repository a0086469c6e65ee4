"""Rows that targets outside the lake did not take: how many wait, and sending them again."""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from rivermark.lake.lake import Lake
from rivermark.model.sink import SinkWriter
from rivermark.model.stream import AnyStream, Ingest, Output
from rivermark.model.table import Table
from rivermark.runtime.checkpoint.generation import read_generation
from rivermark.sinks.output import context_of, sinks_of
from rivermark.sinks.undelivered import undelivered_of, waiting_in


class Sent(NamedTuple):
    """The rows or requests that a target was sent again, and the number that it took.

    `reason` is why the last of the others was not taken.
    """

    table: str
    target: str
    waiting: int
    delivered: int
    reason: str | None


def undelivered_tables(stream: AnyStream) -> list[Table]:
    """The tables of what the targets of a stream did not take, whether or not they exist."""
    if isinstance(stream, Ingest):
        return []
    return [undelivered_of(output.table) for output in stream.outputs]


def send_again(lake: Lake, stream: AnyStream, run_id: str, *, dry_run: bool = False) -> list[Sent]:
    """Send what waits to its targets again, in the order in which it came.

    Also while the stream runs. Rows of targets that are no longer declared stay.
    """
    if isinstance(stream, Ingest):
        return []
    return [
        sent
        for output in stream.outputs
        for sent in _send(lake, output, stream, run_id, dry_run=dry_run)
    ]


def _send(
    lake: Lake, output: Output, stream: AnyStream, run_id: str, *, dry_run: bool
) -> list[Sent]:
    done = []
    generation = read_generation(lake, stream)
    every = waiting_in(lake, undelivered_of(output.table))
    for sink in sinks_of(output) if every and generation is not None else ():
        rows = [row for row in every if row["target"] in (sink.target, None)]
        if not rows or sink.writes_table:
            continue
        if dry_run:
            done.append(Sent(output.table.name, sink.target, len(rows), 0, None))
            continue
        assert generation is not None  # noqa: S101 - asked above
        context = context_of(lake, output, generation.origin(stream, run_id))
        with closing(sink.open(context)) as writer:
            if type(writer).resend is SinkWriter.resend:
                continue
            reasons = writer.resend(rows)
        failed = [why for why in reasons if why is not None]
        delivered = len(reasons) - len(failed)
        why = failed[-1] if failed else None
        done.append(Sent(output.table.name, sink.target, len(rows), delivered, why))
    return done
