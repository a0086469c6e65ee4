"""Days of an ingest decided again from raw: compared, put in the place of what was, and undone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from typing import Any, Final

from rivermark.backfill.as_of import check_range
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.downstream import DownstreamResult
from rivermark.backfill.ingest_replay.decisions import (
    Changes,
    Decisions,
    Turn,
    changes_table,
    compare_decisions,
    decided_tables,
)
from rivermark.backfill.ingest_replay.in_place import (
    Replacement,
    alone,
    interrupted,
    put_in_place,
)
from rivermark.backfill.ingest_replay.replay import Replayed, beside, replay
from rivermark.backfill.ingest_replay.scope import Engine, Scope, flat
from rivermark.backfill.late.hours import bounds
from rivermark.backfill.result import Reprocessing
from rivermark.ingest.batch.base import Kind
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model.contract import REPLACED
from rivermark.model.errors import RivermarkError, WrongUse
from rivermark.model.parameters import LONGEST
from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.table import Table

# What stays of a table's rows, and what comes from beside. Former readings stay in the quarantine;
# late rows that were merged stay merged.
STAYING: Final = """
SELECT {columns} FROM ( SELECT * FROM {rows} WHERE {scope} ) t
ANTI JOIN moved USING ( {place} )
UNION ALL SELECT {columns} FROM side_{rows} SEMI JOIN moved USING ( {place} )
"""
FORMER_READINGS: Final = """
UNION ALL SELECT {columns} FROM {rows} SEMI JOIN moved USING ( {place} )
WHERE array_contains(reasons, '{replaced}')
"""
MERGED: Final = """
UNION ALL SELECT {columns} FROM side_late_rows SEMI JOIN moved USING ( {place} )
SEMI JOIN ( SELECT {place} FROM late_rows WHERE {scope} ) l USING ( {place} )
SEMI JOIN ( SELECT {place} FROM admitted_rows WHERE {scope} ) a USING ( {place} )
"""


@dataclass(frozen=True, kw_only=True)
class IngestReplay:
    """Decisions that a replay of days changes, and what replacing them came to.

    `done` is None where nothing was replaced; the list of all changes is `table`.
    """

    stream: str
    first: date
    last: date
    replayed: Replayed
    changes: Changes
    table: str
    done: Reprocessing | None = None
    downstream: DownstreamResult = field(default_factory=DownstreamResult)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Numbers of rows by how their decision changes."""
        return self.changes.turns

    @property
    def rows_changed(self) -> int:
        """Rows whose decision or values change."""
        return self.changes.rows

    @property
    def sample(self) -> tuple[Mapping[str, Any], ...]:
        """The first changed rows, by their places."""
        return self.changes.sample


def replay_ingest(
    context: BackfillContext,
    name: str,
    first: date,
    last: date,
    *,
    lateness_seconds: float | None = None,
    replacing: bool = False,
) -> IngestReplay:
    """Decides about the rows of these days again, as the ingest is declared now.

    `lateness_seconds` takes the place of the declared lateness. Published tables are only read,
    but where `replacing`: then the decisions that change take the place of those that are
    published, and closed days downstream are recomputed where they differ.
    Raises RivermarkError for a stream that admits no rows or has not run.
    """
    ingest = an_admitting(context.topology.named(name))
    check_range(first, last)
    if lateness_seconds is not None:
        if replacing:
            raise WrongUse("a replacement is by what is declared: declare that lateness first")
        ingest = _with_lateness(ingest, lateness_seconds)
    check_has_run(context.lake, ingest)
    if not replacing:
        replayed = replay(context, ingest, first, last)
        return _compared(context, ingest, first, last, replayed)
    with alone(context.lake):
        for table in ingest.tables:
            create_table(context.lake, table)
        report = _compared(context, ingest, first, last, replay(context, ingest, first, last))
        done, downstream = put_in_place(context, _replacement(context.lake, ingest, report))
        return replace(report, done=done, downstream=downstream)


def an_admitting(stream: AnyStream) -> Ingest:
    """The stream, if it admits rows from outside; else WrongUse."""
    if isinstance(stream, Ingest):
        return stream
    raise WrongUse(
        f"'{stream.name}' reads tables and admits no rows; its days are recomputed by: "
        f"rivermark reprocess {stream.name}"
    )


def check_has_run(lake: Lake, ingest: Ingest) -> None:
    """Raise RivermarkError where a table of the ingest does not exist."""
    missing = [t.name for t in ingest.tables if not lake.exists(t)]
    if missing:
        raise RivermarkError(f"table '{missing[0]}' does not exist yet: run '{ingest.name}' first")


def _with_lateness(ingest: Ingest, seconds: float) -> Ingest:
    if ingest.lateness is None:
        raise RivermarkError(f"'{ingest.name}' reads dumps: no row of it can be late")
    if not 0.001 <= seconds <= LONGEST.total_seconds():
        raise WrongUse(
            f"a lateness of {seconds} seconds: expected 0.001 to "
            f"{LONGEST.total_seconds():.0f} ({LONGEST.days} days)"
        )
    return replace(ingest, lateness=timedelta(milliseconds=round(seconds * 1000)))


def _compared(
    context: BackfillContext, ingest: Ingest, first: date, last: date, replayed: Replayed
) -> IngestReplay:
    changes = compare_decisions(
        context,
        Decisions(ingest),
        Decisions(beside(ingest)),
        Scope(replayed.first_batch, replayed.last_batch),
        days=bounds(first, last, ingest.days),
        keep=True,
    )
    table = changes_table(ingest).name
    return IngestReplay(
        stream=ingest.name, first=first, last=last, replayed=replayed, changes=changes, table=table
    )


def _replacement(lake: Lake, ingest: Ingest, report: IngestReplay) -> Replacement:
    """The rows that change, of the batches that brought them."""
    order = ["replay", report.first.isoformat(), report.last.isoformat()]
    earlier = interrupted(lake, ingest, order)
    batches = [*report.changes.batches, *(earlier.metadata["scope"][:2] if earlier else ())]
    scope = Scope(min(batches, default=0), max(batches, default=0))
    tables = decided_tables(ingest)
    differ = {kind for kind in tables if not report.changes.tables[kind].same}
    # A late row that was merged lies in the admitted table too.
    differ |= {"admitted"} if "late" in differ else set()
    return Replacement(
        ingest=ingest,
        order=order,
        scope=scope,
        queries={
            table: partial(_staying, kind=kind, table=table, scope=scope)
            for kind, table in tables.items()
            if kind in differ
        },
        reads={
            **Decisions(ingest).tables(),
            **Decisions(beside(ingest)).tables("side_"),
            "moved": (changes_table(ingest), None),
        },
        differences=report.changes.by_table(ingest),
        days=(report.first, report.last),
        earlier=earlier,
    )


def _staying(engine: Engine, *, kind: Kind, table: Table, scope: Scope) -> str:
    more = {"admitted": MERGED, "late": "", "quarantined": FORMER_READINGS}[kind]
    return flat(
        STAYING + more,
        columns=", ".join(engine.name(name) for name in table.schema.fieldNames()),
        rows=f"{kind}_rows",
        scope=scope.sql(spark=engine.on_spark),
        replaced=REPLACED,
    )
