"""`rivermark files`: what became of each file or other split of a source. Needs no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

import typer

from rivermark.cli.console import grid, moment, number, out, plain
from rivermark.cli.deployment import Home, settings_for, topology
from rivermark.ingest.plan import open_source, plan_table
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.sql import query
from rivermark.model.errors import RivermarkError
from rivermark.model.source import Split, Waiting
from rivermark.model.stream import Ingest
from rivermark.model.table import Table
from rivermark.monitor.changed_files import changed_files
from rivermark.settings import Settings

NUMERIC: Final = ("rows", "admitted", "late", "quarantined", "bytes")


@dataclass(frozen=True, kw_only=True)
class FileState:
    """One file or other split of a source: its name, and where its rows went, or why not."""

    name: str
    state: str
    size: int
    landed_at: datetime
    rows: int | None = None
    admitted: int | None = None
    late: int | None = None
    quarantined: int | None = None
    changed: bool = False


def files(
    stream: Annotated[
        str, typer.Argument(metavar="STREAM", help="An ingest: a stream that reads a source.")
    ],
    limit: Annotated[
        int, typer.Option(min=1, help="Files or other splits to show, the newest.")
    ] = 50,
    home: Home = None,
) -> None:
    """Show what became of each file or other split: read, quarantined and why, or waiting.

    Examples:
        rivermark files taxi/trip_records
        rivermark files taxi/ride_events --limit 5
    """
    settings = settings_for(home)
    ingest = topology().named(stream)
    if not isinstance(ingest, Ingest):
        raise RivermarkError(
            f"'{stream}' reads tables, not a source; see: rivermark status {stream}"
        )
    source = ingest.source
    states = list(file_states(settings, ingest))
    table = grid(None, (source.unit, *NUMERIC, "landed", "state"), right=NUMERIC)
    for file in states[-limit:]:
        counts = (file.rows, file.admitted, file.late, file.quarantined, file.size)
        table.add_row(
            plain(file.name), *map(number, counts), moment(file.landed_at), plain(file.state)
        )
    out().print(table)
    shown = min(limit, len(states))
    out().print(plain(f"{shown} of {len(states)} {source.unit}s. {source.description}"))
    if source.kind == "file":
        out().print(plain(f"Landing root: {settings.landing_root}"))
    if any(state.changed for state in states):
        out().print(plain(f"To read a changed file again: rivermark retake {stream} FILE"))


def file_states(settings: Settings, ingest: Ingest) -> Iterator[FileState]:
    """Every split that was read, is planned, or is known to the source alone, in that order."""
    done = _rows(
        settings,
        INGEST_FILES,
        "SELECT * FROM splits WHERE stream = $stream ORDER BY ingest_batch, modified_at, path",
        {"stream": ingest.name},
    )
    changed = changed_files(settings, ingest)
    for row in done:
        state = "read" if row["reason"] is None else f"quarantined: {row['reason']}"
        if row["file"] in changed:
            state = f"{state}; {changed[row['file']]}"
        yield FileState(
            name=row["file"],
            state=state,
            size=row["size"],
            landed_at=row["modified_at"],
            rows=row["rows"],
            admitted=row["admitted"],
            late=row["late"],
            quarantined=row["quarantined"],
            changed=row["file"] in changed,
        )
    decided = {row["path"] for row in done}
    planned = _rows(settings, plan_table(ingest), "SELECT * FROM splits ORDER BY arrival, path", {})
    for row in planned:
        if row["path"] not in decided:
            yield FileState(
                name=row["name"],
                state="arrived; its rows come with the next batch",
                size=row["size"],
                landed_at=row["modified_at"],
            )
    discovery = open_source(settings.lake(), settings.landing_root, ingest).discover()
    unplanned: list[tuple[Split | Waiting, str]] = [
        *((s, f"waiting: {s.reason or 'ready for the next run'}") for s in discovery.ready),
        *((waiting, f"waiting: {waiting.reason}") for waiting in discovery.waiting),
        *((ignored, f"not taken: {ignored.reason}") for ignored in discovery.ignored),
    ]
    for each, state in sorted(unplanned, key=lambda u: (u[0].modified_at, u[0].path)):
        yield FileState(
            name=each.name,
            state=state,
            size=each.size,
            landed_at=each.modified_at,
        )


def _rows(settings: Settings, table: Table, sql: str, values: dict[str, object]) -> list[dict]:  # type: ignore[type-arg]
    lake = settings.lake()
    if not lake.exists(table):
        return []
    return query(sql, {"splits": dataset_of(delta_table(lake.path(table)))}, values)
