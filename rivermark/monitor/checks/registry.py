"""Which claims are made about a stream, by what it declares."""

from __future__ import annotations

from typing import Final

from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.table import Table
from rivermark.monitor.checks.check import Claim
from rivermark.monitor.checks.dropped_rows import rows_dropped
from rivermark.monitor.checks.late_share import late_share, quarantine_share
from rivermark.monitor.checks.liveness import alive
from rivermark.monitor.checks.row_conservation import rows_accounted_for
from rivermark.monitor.checks.uniqueness import rows_unique
from rivermark.monitor.checks.version_retention import versions_readable

ALIVE: Final = "is_alive"
"""The claim that the restart sensor fails when it gives up, and that a stopped stream breaks."""

VERSIONS: Final = "versions_are_readable"
"""The claim that upkeep kept its promise."""


def claims_of(stream: AnyStream) -> tuple[Claim, ...]:
    """Every claim that holds for the stream while all is well."""
    name, table = stream.name, stream.tables[0]
    lives = Claim(
        name=ALIVE,
        table=table,
        stream=name,
        description="While its group is meant to run, the stream beats and its batches move on.",
        severity="error",
        ask=lambda settings, now: alive(settings, stream, now),
    )
    if isinstance(stream, Ingest):
        return (lives, *_claims_at_the_door(stream))
    unique = (_unique(name, written) for written in stream.tables if written.keys)
    dropped = Claim(
        name="no_row_is_late_downstream",
        table=table,
        stream=name,
        description="No operator dropped a row behind its watermark: the door decides lateness.",
        severity="error",
        ask=lambda settings, _: rows_dropped(settings, name),
    )
    return (lives, *unique, *((dropped,) if stream.kind == "append" else ()))


def promises_of(stream: AnyStream) -> tuple[Claim, ...]:
    """The version promise of each of its tables: asked once a day, because it reads them."""
    return tuple(_promise(stream.name, table) for table in stream.tables)


def _promise(stream: str, table: Table) -> Claim:
    return Claim(
        name=VERSIONS,
        table=table,
        stream=stream,
        description="The oldest version that the promise covers is read, every file of it.",
        severity="error",
        ask=lambda settings, now: versions_readable(settings, table, now),
    )


def _unique(stream: str, table: Table) -> Claim:
    return Claim(
        name="rows_are_unique",
        table=table,
        stream=stream,
        description=f"No two rows share ({', '.join(table.keys)}).",
        severity="error",
        ask=lambda settings, _: rows_unique(settings, table),
    )


def _claims_at_the_door(ingest: Ingest) -> tuple[Claim, ...]:
    name, table = ingest.name, ingest.admitted
    kept = Claim(
        name="every_row_is_accounted_for",
        table=table,
        stream=name,
        description="File by file: rows in = admitted + late + set aside.",
        severity="error",
        ask=lambda settings, _: rows_accounted_for(settings, ingest),
    )
    aside = Claim(
        name="few_rows_are_set_aside",
        table=ingest.quarantine,
        stream=name,
        description=f"At most {ingest.quarantine_below:.1%} of the rows are set aside.",
        severity="warn",
        ask=lambda settings, _: quarantine_share(settings, ingest),
    )
    late = Claim(
        name="few_rows_are_late",
        table=ingest.late,
        stream=name,
        description=f"At most {ingest.late_below:.1%} of the valid rows come too late.",
        severity="warn",
        ask=lambda settings, _: late_share(settings, ingest),
    )
    return (kept, aside, *((late,) if ingest.lateness is not None else ()))
