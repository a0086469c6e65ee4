"""`rivermark status`: the state of every stream, without a JVM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec
import typer

from rivermark.cli.console import ago, grid, moment, number, out, plain
from rivermark.cli.deployment import Home, selected, settings_for, topology
from rivermark.cli.run import Groups, Streams
from rivermark.model.stream import AnyStream, Stream
from rivermark.monitor.status import StreamStatus, desired_states, status_of

NUMERIC: Final = ("rows in", "admitted", "late", "quarantined", "rows")


def status(
    streams: Streams = None,
    group: Groups = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    home: Home = None,
) -> None:
    """Show each stream: rows in, admitted, late, quarantined, watermark, state, last batch.

    Below a group are the counters of its process functions.

    Examples:
        rivermark status
        rivermark status --group taxi_events --json
    """
    settings = settings_for(home)
    chosen = selected(topology(), streams or [], group or [])
    now = datetime.now(UTC)
    statuses = status_of(settings, chosen, now)
    if json:
        for each in statuses:
            # `set_aside` is the name of `quarantined` in earlier versions.
            line = {**asdict(each), "set_aside": each.quarantined}
            typer.echo(msgspec.json.encode(line).decode())
        return
    out().print(plain(f"lake {settings.lake_root}"))
    for name, desired in desired_states(settings, dict.fromkeys(s.group for s in statuses)).items():
        by = f"{desired.by}{', ' + moment(desired.at) if desired.at else ''}"
        title = f"{name}: desired {desired.state}; {desired.reason} ({by})"
        print_statuses([s for s in statuses if s.group == name], title, now)
        print_sinks(stream for stream in chosen if stream.group == name)


def print_statuses(statuses: Sequence[StreamStatus], title: str, now: datetime) -> None:
    """A table of streams; watermarks are UTC."""
    columns = ("stream", *NUMERIC, "watermark", "last batch", "state")
    table = grid(title, columns, right=NUMERIC)
    for each in statuses:
        table.add_row(
            each.stream,
            number(each.rows_in),
            number(each.admitted),
            number(each.late),
            number(each.quarantined),
            number(each.rows),
            moment(each.watermark),
            ago(each.last_batch_at, now),
            plain(f"{each.state}: {each.error}" if each.error else each.state),
        )
    out().print(table)
    for each in statuses:
        if each.metrics:
            metrics = ", ".join(f"{name} {n:,}" for name, n in sorted(each.metrics.items()))
            out().print(plain(f" {each.stream} counts {metrics}"))


def print_sinks(streams: Iterable[AnyStream]) -> None:
    """Where outputs go besides a table that they append to."""
    for stream in streams:
        for output in stream.outputs if isinstance(stream, Stream) else ():
            for sink in output.sinks:
                out().print(plain(f" {output.table.name} goes to {sink.described()}"))
