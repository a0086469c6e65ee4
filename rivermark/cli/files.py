"""`rivermark files`: what became of each file or other split of a source. Needs no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final

import typer

from rivermark.cli.arguments import Groups, Home, Json, Streams
from rivermark.cli.console import ago, coloured, err, grid, moment, number, out, plain, print_json
from rivermark.cli.deployment import an_ingest, settings_for, suited, topology
from rivermark.ingest.plan import opened_source, parts_of, plan_table
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.sql import query
from rivermark.model.errors import RivermarkError
from rivermark.model.printable import printable
from rivermark.model.source import LOST, Split, Waiting
from rivermark.model.source_abilities import LandingSource
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
    streams: Streams = None,
    group: Groups = None,
    limit: Annotated[
        int, typer.Option(min=1, help="Files or other splits of each stream to show, the newest.")
    ] = 50,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Show the state of each file or other split: read, waiting, or quarantined and why.

    JSON:
        streams (stream, source, unit, total,
        files (name, state, size, landed_at, rows, admitted, late, quarantined, changed),
        parts (name, records, newest, oldest))

    Examples:
        rivermark files taxi/trip_records
        rivermark files taxi/ride_events --limit 5
        rivermark files --group taxi_events --json
    """
    settings = settings_for(home)
    ingests = suited(topology(), streams, group, an_ingest)
    with err().status("Looking at files"):
        states = {ingest.name: list(file_states(settings, ingest)) for ingest in ingests}
    if as_json:
        listed = [
            {
                "stream": ingest.name,
                "source": ingest.source.description,
                "unit": ingest.source.unit,
                "total": len(states[ingest.name]),
                "files": states[ingest.name][-limit:],
                "parts": parts_of(settings.lake(), settings.landing_root, ingest),
            }
            for ingest in ingests
        ]
        print_json({"streams": listed})
        return
    for ingest in ingests:
        title = ingest.name if len(ingests) > 1 else None
        print_files(settings, ingest, states[ingest.name], limit, title)


def print_files(
    settings: Settings, ingest: Ingest, states: list[FileState], limit: int, title: str | None
) -> None:
    """A table of the newest files or other splits of an ingest, and where they land."""
    source = ingest.source
    table = grid(title, (source.unit, *NUMERIC, "landed", "state"), right=NUMERIC)
    for file in states[-limit:]:
        counts = (file.rows, file.admitted, file.late, file.quarantined, file.size)
        table.add_row(
            printable(file.name), *map(number, counts), moment(file.landed_at), coloured(file.state)
        )
    out().print(table)
    shown = min(limit, len(states))
    out().print(plain(f"{shown} of {len(states)} {source.unit}s. {source.description}"))
    if isinstance(source, LandingSource):
        out().print(plain(f"Landing root: {settings.landing_root}"))
    _print_parts(settings, ingest)
    if any(state.changed for state in states):
        out().print(plain(f"To read a changed file again: rivermark retake {ingest.name} FILE"))


def _print_parts(settings: Settings, ingest: Ingest) -> None:
    """Prints unread records and the age of the last one of each part: none is silent unseen."""
    try:
        parts = parts_of(settings.lake(), settings.landing_root, ingest)
    except RivermarkError as error:
        out().print(plain(f"What is unread is not known: {error}"))
        return
    now = datetime.now(UTC)
    for part in parts:
        newest = f"the last one {ago(part.newest, now)}" if part.newest else "none yet"
        oldest = f", the oldest {ago(part.oldest, now)}" if part.oldest else ""
        unread = f"{part.records:,} records unread{oldest}"
        out().print(plain(f"{printable(part.name)}: {unread}; {newest}"))


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
        became = "lost" if row["status"] == LOST else "quarantined"
        state = "read" if row["reason"] is None else f"{became}: {row['reason']}"
        if ingest.source.skipped and row.get("skipped"):
            state = f"{state}; {row['skipped']:,} {ingest.source.skipped}"
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
    with opened_source(settings.lake(), settings.landing_root, ingest) as source:
        discovery = source.discover()
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
