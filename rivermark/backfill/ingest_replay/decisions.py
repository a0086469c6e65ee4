"""Decisions of admission that a replay changes: listed row by row, and counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from deltalake import write_deltalake

from rivermark.backfill.context import BackfillContext
from rivermark.backfill.ingest_replay.replay import Replayed, SideTables
from rivermark.backfill.late.hours import bounds
from rivermark.backfill.late.merged import ADMITTED_ON_TIME
from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.sql import connection, quoted
from rivermark.model.contract import REPLACED
from rivermark.model.stream import Ingest
from rivermark.model.table import Table

if TYPE_CHECKING:
    from pyarrow import dataset

SHOWN: Final = 100

# A decision is a place and, for quarantined rows, their reasons in the order of the rules.
DECIDED: Final = """
SELECT _ingest_batch, _file, _row, {time} AS event_time, 'admitted' AS decision, '' AS reasons,
       {money} AS money FROM {admitted} WHERE _ingest_batch BETWEEN $first AND $last
UNION ALL
SELECT _ingest_batch, _file, _row, {time}, 'late', '', {money}
FROM {late} WHERE _ingest_batch BETWEEN $first AND $last
UNION ALL
SELECT _ingest_batch, _file, _row, event_time, 'quarantined', array_to_string(reasons, ', '), NULL
FROM {quarantine} WHERE _row IS NOT NULL AND _ingest_batch BETWEEN $first AND $last
  AND NOT coalesce(list_contains(reasons, '{replaced}'), false)
"""
CHANGED: Final = """
SELECT _ingest_batch, _file, _row, coalesce(a.event_time, b.event_time) AS event_time,
       b.decision AS before, b.reasons AS reasons_before,
       a.decision AS after, a.reasons AS reasons_after,
       coalesce(a.money, b.money)::DECIMAL(38, 9) AS money
FROM ({before}) b FULL JOIN ({after}) a USING (_ingest_batch, _file, _row)
WHERE (b.decision, b.reasons) IS DISTINCT FROM (a.decision, a.reasons)
  AND ((a.event_time >= $start AND a.event_time < $end)
       OR (b.event_time >= $start AND b.event_time < $end))
ORDER BY _ingest_batch, _file, _row
"""
COUNTED: Final = """
SELECT before, reasons_before, after, reasons_after, count(*) AS rows, sum(money) AS money
FROM changes GROUP BY 1, 2, 3, 4 ORDER BY rows DESC, 1, 2, 3, 4
"""


@dataclass(frozen=True)
class Turn:
    """Rows whose decision changes from one (and its reasons) to another.

    `money` is their sum where the ingest declares a money column and the rows could be read.
    """

    before: str
    after: str
    rows: int
    money: Decimal | None


@dataclass(frozen=True, kw_only=True)
class IngestReplay:
    """Decisions that a replay of days changes; `sample` holds the first changed rows."""

    stream: str
    first: date
    last: date
    replayed: Replayed
    turns: tuple[Turn, ...]
    sample: tuple[Mapping[str, Any], ...]
    table: str

    @property
    def rows_changed(self) -> int:
        """Rows whose decision changes."""
        return sum(turn.rows for turn in self.turns)


def changes_table(ingest: Ingest) -> Table:
    """The list of changed decisions of an ingest's newest replay."""
    return Table(
        name=f"ops/readmitted/{ingest.name}_changes",
        schema=(
            "_ingest_batch long, _file string, _row long, event_time timestamp, before string,"
            " reasons_before string, after string, reasons_after string, money decimal(38,9)"
        ),
        description=f"Rows of '{ingest.name}' that a replay of admission decides differently.",
    )


def changed_decisions(
    context: BackfillContext, ingest: Ingest, first: date, last: date, replayed: Replayed
) -> IngestReplay:
    """Compare the replay with what was decided, for rows of these days, and keep the list.

    A late row that was merged since counts as late: that was the decision of admission.
    """
    lake, table = context.lake, changes_table(ingest)
    create_table(lake, table)
    start, end = bounds(first, last, ingest.days)
    values = {
        "first": replayed.first_batch,
        "last": replayed.last_batch,
        "start": start,
        "end": end,
    }
    with connection(_tables(lake, ingest)) as duckdb:
        changes: pa.Table = duckdb.sql(_sql(ingest), params=values).to_arrow_table()
        duckdb.register("changes", changes)
        counted: pa.Table = duckdb.sql(COUNTED).to_arrow_table()
    schema = pa.schema(delta_table(lake.path(table)).schema().to_arrow())
    write_deltalake(
        delta_table(lake.path(table)),
        changes.cast(schema),
        mode="overwrite",
        commit_properties=commit_properties({"readmission": ingest.name, "run": context.run_id}),
    )
    turns = tuple(
        Turn(
            _decision(row["before"], row["reasons_before"]),
            _decision(row["after"], row["reasons_after"]),
            row["rows"],
            row["money"],
        )
        for row in counted.to_pylist()
    )
    return IngestReplay(
        stream=ingest.name,
        first=first,
        last=last,
        replayed=replayed,
        turns=turns,
        sample=tuple(_shown(row) for row in changes.slice(0, SHOWN).to_pylist()),
        table=table.name,
    )


def _sql(ingest: Ingest) -> str:
    """The query, made of declared columns, quoted, and of constants."""
    names = {
        "time": quoted(ingest.contract.event_time),
        "money": quoted(ingest.money) if ingest.money else "NULL",
        "replaced": REPLACED,
    }
    before = DECIDED.format(
        admitted=ADMITTED_ON_TIME, late="late_rows", quarantine="quarantined_rows", **names
    )
    after = DECIDED.format(
        admitted="side_admitted", late="side_late", quarantine="side_quarantine", **names
    )
    return CHANGED.format(before=before, after=after)


def _tables(lake: Lake, ingest: Ingest) -> dict[str, dataset.Dataset]:
    side = SideTables.of(ingest)
    tables = {
        "admitted_rows": ingest.versions,
        "late_rows": ingest.late,
        "quarantined_rows": ingest.quarantine,
        "side_admitted": side.admitted,
        "side_late": side.late,
        "side_quarantine": side.quarantine,
    }
    return {name: dataset_of(delta_table(lake.path(table))) for name, table in tables.items()}


def _decision(decision: str | None, reasons: str | None) -> str:
    return f"{decision or 'nowhere'}: {reasons}" if reasons else decision or "nowhere"


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """A changed row by its place, without its values."""
    at = row["event_time"]
    return {
        "file": row["_file"],
        "row": row["_row"],
        "event_time": at.astimezone(UTC).isoformat() if isinstance(at, datetime) else "",
        "before": _decision(row["before"], row["reasons_before"]),
        "after": _decision(row["after"], row["reasons_after"]),
    }
