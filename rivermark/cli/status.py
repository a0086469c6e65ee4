"""`rivermark status`: how every stream is, without an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec
import typer

from rivermark.cli.console import ago, grid, moment, number, out, plain
from rivermark.cli.deployment import Home, selected, settings_for, topology
from rivermark.cli.overview import StreamState, overview, wishes
from rivermark.cli.run import Groups, Streams

NUMERIC: Final = ("rows in", "admitted", "late", "set aside", "rows")


def status(
    streams: Streams = None,
    group: Groups = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    home: Home = None,
) -> None:
    """Show each stream: rows in, admitted, late, set aside, watermark, state, last batch.

    Below a group stand the numbers that its process functions count themselves.

    Examples:
        rivermark status
        rivermark status --group taxi_events --json
    """
    settings, found = settings_for(home), topology()
    chosen = selected(found, streams or [], group or [])
    now = datetime.now(UTC)
    states = overview(settings, chosen, now)
    if json:
        for state in states:
            typer.echo(msgspec.json.encode(asdict(state)).decode())
        return
    out().print(plain(f"lake {settings.lake_root}"))
    for name, wish in wishes(settings, dict.fromkeys(s.group for s in states)).items():
        said = f"{wish.reason} ({wish.by}{', ' + moment(wish.at) if wish.at else ''})"
        wanted = f"{name}: should {'run' if wish.state == 'run' else 'rest'}; {said}"
        print_states([s for s in states if s.group == name], wanted, now)


def print_states(states: Sequence[StreamState], title: str, now: datetime) -> None:
    """A table of streams; watermarks are UTC."""
    columns = ("stream", *NUMERIC, "watermark", "last batch", "state")
    table = grid(title, columns, right=NUMERIC)
    for found in states:
        table.add_row(
            found.stream,
            number(found.rows_in),
            number(found.admitted),
            number(found.late),
            number(found.set_aside),
            number(found.rows),
            moment(found.watermark),
            ago(found.last_batch_at, now),
            plain(f"{found.state}: {found.error}" if found.error else found.state),
        )
    out().print(table)
    for found in states:
        if found.metrics:
            told = ", ".join(f"{name} {n:,}" for name, n in sorted(found.metrics.items()))
            out().print(plain(f" {found.stream} counts {told}"))
