"""Decisions of admission before and after a replay, compared row by row by DuckDB or by Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from deltalake import write_deltalake

from rivermark.backfill.context import BackfillContext
from rivermark.backfill.difference import KINDS, Difference
from rivermark.backfill.ingest_replay.scope import Engine, Opened, Scope, engine_over, flat
from rivermark.ingest.batch.base import Kind
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.commit_metadata import commit_properties, user_metadata
from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.schema import create_table
from rivermark.model.contract import META, REPLACED
from rivermark.model.stream import Ingest
from rivermark.model.table import Table
from rivermark.model.watermark import WATERMARK_AFTER

SHOWN: Final = 100
# Words that are names of tables stand alone: each engine puts its own there.
# A decision is a place and, for quarantined rows, their reasons in the order of the rules. A late
# row that was merged since counts as late: that was the decision of admission.
DECIDED: Final = """
SELECT {place}, {time} AS event_time, 'admitted' AS decision, '' AS reasons, {digest} AS digest,
{fresh} AS fresh, {money} AS money FROM ( SELECT * FROM {side}admitted_rows WHERE {scope} ) a
ANTI JOIN ( SELECT {place} FROM {side}late_rows WHERE {scope} ) l USING ( {place} )
UNION ALL SELECT {place}, {time}, 'late', '', {digest}, {fresh}, {money}
FROM {side}late_rows WHERE {scope}
UNION ALL SELECT {place}, event_time, 'quarantined', {joined}, {no_digest}, false, NULL
FROM {side}quarantined_rows WHERE {scope} AND _row IS NOT NULL
AND NOT coalesce(array_contains(reasons, '{replaced}'), false)
"""
PAIRED: Final = """
SELECT {place}, b.event_time AS time_before, a.event_time AS time_after,
b.decision AS before, b.reasons AS reasons_before, a.decision AS after,
a.reasons AS reasons_after, CAST(coalesce(a.money, b.money) AS DECIMAL(38, 9)) AS money,
( b.decision IS DISTINCT FROM a.decision OR b.reasons IS DISTINCT FROM a.reasons
OR b.digest IS DISTINCT FROM a.digest OR coalesce(a.fresh, false)
OR coalesce(b.fresh, false) ) AS differs
FROM before_rows b FULL JOIN after_rows a USING ( {place} ) WHERE {within}
"""
COUNTED: Final = """
SELECT before, reasons_before, after, reasons_after, differs, count(*) AS n, sum(money) AS money
FROM paired GROUP BY before, reasons_before, after, reasons_after, differs
"""
LISTED: Final = """
SELECT {place}, coalesce(time_after, time_before) AS event_time, before, reasons_before, after,
reasons_after, money FROM paired WHERE differs ORDER BY {place}
"""
SPAN: Final = """
SELECT min(_ingest_batch) AS oldest, max(_ingest_batch) AS newest FROM paired WHERE differs
"""
HOURS: Final = """
SELECT date_trunc('hour', time_before) AS hour FROM paired WHERE differs
AND ( before <> 'quarantined' OR after <> 'quarantined' )
UNION SELECT date_trunc('hour', time_after) FROM paired WHERE differs
AND ( before <> 'quarantined' OR after <> 'quarantined' )
"""


@dataclass(frozen=True)
class Turn:
    """Rows whose decision, or whose values, change from one (and its reasons) to another.

    `money` is their sum where the ingest declares a money column and the rows could be read.
    """

    before: str
    after: str
    rows: int
    money: Decimal | None


@dataclass(frozen=True)
class Decisions:
    """The tables in which decisions lie, each of a version; of the newest without one."""

    ingest: Ingest
    versions: Mapping[str, int] = field(default_factory=dict)

    def tables(self, side: str = "") -> dict[str, Opened]:
        """The tables by the names that queries have for them."""
        return {
            f"{side}{kind}_rows": (table, self.versions.get(table.name))
            for kind, table in decided_tables(self.ingest).items()
        }


def decided_tables(ingest: Ingest) -> dict[Kind, Table]:
    """The tables of decided rows, in the order in which they are replaced."""
    return {"quarantined": ingest.quarantine, "admitted": ingest.versions, "late": ingest.late}


@dataclass(frozen=True)
class Changes:
    """Decisions that differ: numbers by turn and by table, and the first such rows.

    The hours (UTC) of rows that are or were admitted or late are those of the admitted table.
    """

    turns: tuple[Turn, ...]
    tables: Mapping[Kind, Difference]
    sample: tuple[Mapping[str, Any], ...]
    batches: tuple[int, ...]
    """The first and the last planned batch of such rows; empty without any."""

    @property
    def rows(self) -> int:
        """Rows whose decision or values change."""
        return sum(turn.rows for turn in self.turns)

    def by_table(self, ingest: Ingest) -> dict[Table, Difference]:
        """The numbers by the ingest's tables, in the order in which they are replaced."""
        return {table: self.tables[kind] for kind, table in decided_tables(ingest).items()}


def changes_table(ingest: Ingest) -> Table:
    """The list of changed decisions of an ingest's newest replay."""
    return Table(
        name=f"ops/replayed/{ingest.name}_changes",
        schema=(
            "_ingest_batch long, _file string, _row long, event_time timestamp, before string,"
            " reasons_before string, after string, reasons_after string, money decimal(38,9)"
        ),
        description=f"Rows of '{ingest.name}' that a replay of admission decides differently.",
    )


def compare_decisions(
    context: BackfillContext,
    before: Decisions,
    after: Decisions,
    scope: Scope,
    *,
    days: tuple[datetime, datetime] | None = None,
    keep: bool = False,
) -> Changes:
    """Compare the decisions about rows of a scope, of which `days` (UTC) are rows looked at.

    With `keep` the list of changes is written to the ingest's `changes_table`.
    """
    ingest = before.ingest
    tables = before.tables() | after.tables("side_")
    with engine_over(context, tables, ingest.versions, scope) as engine:
        for side, kept in (("", "before_rows"), ("side_", "after_rows")):
            own, other = (
                _columns(context, d) for d in ((before, after) if not side else (after, before))
            )
            engine.keep(kept, _decided(engine, ingest, scope, side, own, other))
        engine.keep("paired", flat(PAIRED, within=_within(days)))
        counted = engine.rows(flat(COUNTED))
        hours = frozenset(at.astimezone(UTC) for (at,) in engine.rows(flat(HOURS)) if at)
        first = engine.rows(f"{flat(LISTED)} LIMIT {SHOWN}")
        ((oldest, newest),) = engine.rows(flat(SPAN))
        if keep:
            _keep(context, ingest, engine)
    turns = [
        Turn(_decision(before, because), _decision(after, because_now), n, money)
        for before, because, after, because_now, differs, n, money in counted
        if differs
    ]
    turns.sort(key=lambda turn: (-turn.rows, turn.before, turn.after))
    kinds: tuple[Kind, ...] = ("admitted", "late", "quarantined")
    differences = {kind: _difference(kind, counted, hours) for kind in kinds}
    batches = () if oldest is None else (oldest, newest)
    return Changes(tuple(turns), differences, tuple(map(_shown, first)), batches)


def _columns(context: BackfillContext, decisions: Decisions) -> list[str]:
    """The columns of values that the tables of admitted and of late rows have."""
    left_out = {*(f.name for f in META), WATERMARK_AFTER.name}
    tables = decisions.tables()
    known = [
        {*dataset_of(delta_table(context.lake.path(table), version)).schema.names}
        for table, version in (tables["admitted_rows"], tables["late_rows"])
    ]
    declared = decisions.ingest.versions.schema.fieldNames()
    return [n for n in declared if n not in left_out and all(n in names for names in known)]


def _decided(
    engine: Engine,
    ingest: Ingest,
    scope: Scope,
    side: str,
    own: Collection[str],
    other: Collection[str],
) -> str:
    """The query for the decisions, made of declared columns, quoted, and of constants."""
    # A table that has not got a declared column yet has no values of it.
    alone = " OR ".join(f"{engine.name(n)} IS NOT NULL" for n in own if n not in other)
    return flat(
        DECIDED,
        side=side,
        time=engine.name(ingest.contract.event_time),
        money=engine.name(ingest.money) if ingest.money else "NULL",
        digest=engine.digest(name for name in own if name in other),
        no_digest=engine.no_digest,
        fresh=f"( {alone} )" if alone else "false",
        joined=engine.joined("reasons"),
        replaced=REPLACED,
        scope=scope.sql(spark=engine.on_spark),
    )


def _within(days: tuple[datetime, datetime] | None) -> str:
    """The pairs of which a row lies in [start, end)."""
    if days is None:
        return "true"
    start, end = (at.astimezone(UTC).replace(tzinfo=None).isoformat(" ") for at in days)
    return " OR ".join(
        f"( {side}.event_time >= TIMESTAMP '{start}' AND {side}.event_time < TIMESTAMP '{end}' )"
        for side in ("a", "b")
    )


def _keep(context: BackfillContext, ingest: Ingest, engine: Engine) -> None:
    table = changes_table(ingest)
    create_table(context.lake, table)
    path, metadata = context.lake.path(table), {"readmission": ingest.name, "run": context.run_id}
    rows = engine.result(flat(LISTED))
    if not isinstance(rows, pa.RecordBatchReader):
        writer = rows.write.format("delta").mode("overwrite")
        writer.option("userMetadata", user_metadata(metadata)).save(path)
        return
    write_deltalake(
        delta_table(path),
        rows.cast(arrow_schema(table.schema)),
        mode="overwrite",
        commit_properties=commit_properties(metadata),
    )


def _difference(
    kind: Kind, counted: list[tuple[Any, ...]], hours: frozenset[datetime]
) -> Difference:
    numbers = dict.fromkeys(KINDS, 0)
    for before, _, after, _, differs, n, _ in counted:
        if before == kind == after:
            numbers["changed" if differs else "unchanged"] += n
        elif after == kind:
            numbers["added"] += n
        elif before == kind:
            numbers["removed"] += n
    counts: dict[str, Any] = dict(numbers)
    return Difference(**counts, hours=hours if kind == "admitted" else frozenset())


def _decision(decision: str | None, reasons: str | None) -> str:
    return f"{decision or 'nowhere'}: {reasons}" if reasons else decision or "nowhere"


def _shown(row: tuple[Any, ...]) -> dict[str, Any]:
    """A changed row by its place, without its values."""
    _, file, number, at, before, reasons_before, after, reasons_after, _ = row
    return {
        "file": file,
        "row": number,
        "event_time": at.astimezone(UTC).isoformat() if isinstance(at, datetime) else "",
        "before": _decision(before, reasons_before),
        "after": _decision(after, reasons_after),
    }
