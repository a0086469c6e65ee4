"""Rebuilding admission from raw, as a rehearsal: replay, compare, list."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from rivermark.backfill.as_of import check_range
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.ingest_replay.decisions import IngestReplay, changed_decisions
from rivermark.backfill.ingest_replay.replay import replay
from rivermark.model.errors import RivermarkError, WrongUse
from rivermark.model.parameters import LONGEST
from rivermark.model.stream import AnyStream, Ingest


def replay_ingest(
    context: BackfillContext,
    name: str,
    first: date,
    last: date,
    *,
    lateness_seconds: float | None = None,
) -> IngestReplay:
    """Decides about the rows of these days again, as the ingest is declared now.

    `lateness_seconds` takes the place of the declared lateness. Published tables are only read.
    Raises RivermarkError for a stream that admits no rows or has not run.
    """
    ingest = an_admitting(context.topology.named(name))
    check_range(first, last)
    if lateness_seconds is not None:
        if ingest.lateness is None:
            raise RivermarkError(f"'{name}' reads dumps: no row of it can be late")
        if not 0.001 <= lateness_seconds <= LONGEST.total_seconds():
            raise WrongUse(
                f"a lateness of {lateness_seconds} seconds: expected 0.001 to "
                f"{LONGEST.total_seconds():.0f} ({LONGEST.days} days)"
            )
        lateness = timedelta(milliseconds=round(lateness_seconds * 1000))
        ingest = replace(ingest, lateness=lateness)
    missing = [t.name for t in ingest.tables if not context.lake.exists(t)]
    if missing:
        raise RivermarkError(f"table '{missing[0]}' does not exist yet: run '{name}' first")
    replayed = replay(context, ingest, first, last)
    return changed_decisions(context, ingest, first, last, replayed)


def an_admitting(stream: AnyStream) -> Ingest:
    """The stream, if it admits rows from outside; else WrongUse."""
    if isinstance(stream, Ingest):
        return stream
    raise WrongUse(
        f"'{stream.name}' reads tables and admits no rows; its days are recomputed by: "
        f"rivermark reprocess {stream.name}"
    )
