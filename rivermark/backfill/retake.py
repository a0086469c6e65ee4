"""A changed file is read again: its rows take the place of those of its former reading.

The new rows keep the batch of the former ones, and none of them is late: every table downstream is
computed again anyway. They are decided beside and put in place as those of a replay are, with the
raw rows last (rivermark/backfill/ingest_replay/in_place.py).
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import pyarrow as pa
from deltalake import write_deltalake

from rivermark.backfill.context import BackfillContext
from rivermark.backfill.difference import Difference
from rivermark.backfill.downstream import DownstreamResult
from rivermark.backfill.ingest_replay.decisions import (
    Decisions,
    compare_decisions,
    decided_tables,
)
from rivermark.backfill.ingest_replay.in_place import (
    Replacement,
    alone,
    interrupted,
    put_in_place,
)
from rivermark.backfill.ingest_replay.replay import admission_beside, beside
from rivermark.backfill.ingest_replay.scope import Engine, Scope, engine_over, flat
from rivermark.ingest.decision import AdmissionPlan, decide
from rivermark.ingest.plan import open_source
from rivermark.ingest.split_outcomes import INGEST_FILES, SplitOutcome, outcome_row
from rivermark.ingest.watermark_recovery import recover_watermark
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.sql import query
from rivermark.model.contract import REPLACED
from rivermark.model.errors import RivermarkError
from rivermark.model.source import PlannedSplit, SourceReader, Split
from rivermark.model.stream import Ingest
from rivermark.model.table import Table

# Former rows have no event time in the quarantine: a day counts what came for it once.
KEPT: Final = """
SELECT {columns} FROM quarantined_rows WHERE {scope} AND array_contains(reasons, '{replaced}')
"""
WHOLE: Final = """
UNION ALL SELECT _file, _row, _ingest_batch, _ingested_at, {reasons} AS reasons,
'was quarantined: ' || {joined} AS details, event_time, payload FROM quarantined_rows
WHERE {scope} AND _row IS NULL AND NOT array_contains(reasons, '{replaced}')
"""
LAST: Final = """
UNION ALL SELECT r._file, r._row, r._ingest_batch, r._ingested_at, {reasons} AS reasons,
CASE WHEN a._row IS NOT NULL THEN 'was admitted' WHEN l._row IS NOT NULL THEN 'was late'
ELSE 'was quarantined: ' || coalesce(q.because, '') END AS details,
CASE WHEN false THEN r._ingested_at END AS event_time, r.payload
FROM ( SELECT * FROM raw_rows WHERE {scope} ) r
LEFT JOIN ( SELECT DISTINCT _row FROM admitted_rows WHERE {scope} ) a ON a._row = r._row
LEFT JOIN ( SELECT DISTINCT _row FROM late_rows WHERE {scope} ) l ON l._row = r._row
LEFT JOIN ( SELECT _row, {joined} AS because FROM quarantined_rows
WHERE {scope} AND NOT array_contains(reasons, '{replaced}') ) q ON q._row = r._row
"""
KEPT_READING: Final = """
SELECT count(*) AS n FROM raw_rows SEMI JOIN ( {kept} ) k USING ( _ingested_at ) WHERE {scope}
"""
OTHER_TEXTS: Final = """
SELECT count(*) AS n FROM ( SELECT * FROM raw_rows WHERE {scope} ) r
FULL JOIN side_raw_rows s ON r._row = s._row WHERE r.payload IS DISTINCT FROM s.payload
"""
WHOLE_SIDE: Final = "SELECT {columns} FROM side_{rows}"


@dataclass(frozen=True)
class Retaken:
    """Result of reading a file again: its former outcome, the new one, and what followed.

    `id` is that of the reprocessing, by which it is undone.
    """

    file: str
    former: dict[str, int]
    outcome: SplitOutcome
    id: str = ""
    downstream: DownstreamResult = field(default_factory=DownstreamResult)


def retake(context: BackfillContext, ingest: Ingest, name: str) -> Retaken:
    """Read a file that was read before again, as it lies at its source now.

    The rows of its former reading leave the admitted and the late table and stay in the quarantine
    as `file_replaced`, with what they were; closed days downstream that differ are recomputed,
    open ones stay pending. The stream may run meanwhile.

    Raises:
        RivermarkError: the file was not read before, is gone, or cannot be read; nothing has
            changed then. Also while late rows are merged or another file is read again.
    """
    lake = context.lake
    with alone(lake):
        ledger = former_reading(lake, ingest, name)
        with closing(open_source(lake, context.settings.landing_root, ingest)) as source:
            split = _split_now(source, ingest, ledger)
            scope = Scope(split.batch, split.batch, split.name)
            outcome = _beside(context, ingest, source, split)
            context.on_step(f"{split.name}: {outcome.rows:,} rows read")
            new = _replacement(context, ingest, scope, outcome)
            done, downstream = put_in_place(context, new)
            source.committed([split])
    counts = {name: ledger[name] or 0 for name in ("rows", "admitted", "late", "quarantined")}
    return Retaken(split.name, counts, outcome, done.id if done else "", downstream)


def former_reading(lake: Lake, ingest: Ingest, name: str) -> dict[str, Any]:
    """The newest outcome of a file. Raises RivermarkError where the ingest has not read it."""
    known = lake.exists(INGEST_FILES)
    rows = known and query(
        'SELECT * FROM outcomes WHERE stream = $stream AND file = $file ORDER BY "at" DESC LIMIT 1',
        {"outcomes": dataset_of(delta_table(lake.path(INGEST_FILES)))},
        {"stream": ingest.name, "file": name},
    )
    if not rows:
        raise RivermarkError(
            f"'{ingest.name}' has read no {ingest.source.unit} '{name}'; see: "
            f"rivermark files {ingest.name}"
        )
    return rows[0]


def _split_now(source: SourceReader, ingest: Ingest, ledger: dict[str, Any]) -> PlannedSplit:
    name = ledger["file"]
    split = source.current(name)
    if split is None:
        raise RivermarkError(
            f"{ingest.source.unit} '{name}' is no longer at its source, or can never change; "
            "nothing was changed"
        )
    if not isinstance(split, Split) or split.status != "ready":
        raise RivermarkError(f"'{name}' cannot be read: {split.reason}; nothing was changed")
    batch, now = ledger["ingest_batch"], datetime.now(UTC)
    return PlannedSplit(**vars(split), batch=batch, landed_at=now)


def _beside(
    context: BackfillContext, ingest: Ingest, source: SourceReader, split: PlannedSplit
) -> SplitOutcome:
    """Read the file into the tables beside those of the ingest."""
    admission = admission_beside(context, ingest, source)
    read = admission.read([split])
    with closing(read.rows):
        if split.name in read.unreadable:
            reason = read.unreadable[split.name]
            raise RivermarkError(f"'{split.name}' cannot be read: {reason}; nothing was changed")
        # Rows that run ahead of the stream are quarantined; none is late.
        on_time = replace(ingest, lateness=None, watermark=None)
        progress = recover_watermark(context.lake, ingest)
        plan = AdmissionPlan.of(read, decide(read, progress, on_time))
        read.rows.write("raw", admission.writers["raw"], 0)
        plan.write(admission.writers, 0)
        return replace(plan.outcome(split), skipped=0)


def _replacement(
    context: BackfillContext, ingest: Ingest, scope: Scope, outcome: SplitOutcome
) -> Replacement:
    lake, side = context.lake, beside(ingest)
    tables = decided_tables(ingest) | {"raw": ingest.raw}
    sides = decided_tables(side) | {"raw": side.raw}
    changes = compare_decisions(context, Decisions(ingest), Decisions(side), scope)
    reads = {f"{kind}_rows": (table, None) for kind, table in tables.items()}
    reads |= {f"side_{kind}_rows": (table, None) for kind, table in sides.items()}
    with engine_over(context, reads, ingest.quarantine, scope) as engine:
        rows = engine.result(_former(engine, ingest, scope))
        path = lake.path(side.quarantine)
        if isinstance(rows, pa.RecordBatchReader):
            schema = arrow_schema(side.quarantine.schema)
            write_deltalake(delta_table(path), rows.cast(schema), mode="append")
        else:
            rows.write.format("delta").mode("append").save(path)
    quarantined = dataset_of(delta_table(path))
    [replaced] = query(
        "SELECT count(*) AS n FROM rows WHERE array_contains(reasons, ?)",
        {"rows": quarantined},
        [REPLACED],
    )
    order = ["retake", *scope.to_json()]
    return Replacement(
        ingest=ingest,
        order=order,
        scope=scope,
        queries={table: partial(_all_beside, kind, table) for kind, table in tables.items()},
        reads=reads,
        differences=changes.by_table(ingest) | {ingest.raw: Difference()},
        ledger=[outcome_row(ingest.name, outcome) | {"replaced": replaced["n"]}],
        earlier=interrupted(lake, ingest, order),
    )


def _all_beside(kind: str, table: Table, engine: Engine) -> str:
    columns = ", ".join(map(engine.name, table.schema.fieldNames()))
    return WHOLE_SIDE.format(columns=columns, rows=f"{kind}_rows")


def _former(engine: Engine, ingest: Ingest, scope: Scope) -> str:
    """All former readings as quarantined rows: the last one's, and those before it.

    A reading of the same text, such as that of an interrupted command, is not kept.
    """
    parts = {
        "columns": ", ".join(map(engine.name, ingest.quarantine.schema.fieldNames())),
        "reasons": engine.listed(f"'{REPLACED}'"),
        "joined": engine.joined("reasons"),
        "replaced": REPLACED,
        "scope": scope.sql(spark=engine.on_spark),
    }
    kept = flat(KEPT, **parts)
    ((again,),) = engine.rows(flat(KEPT_READING, kept=kept, **parts))
    if again:
        # An interrupted command got at least so far.
        return kept
    ((others,),) = engine.rows(flat(OTHER_TEXTS, **parts))
    return flat(KEPT + WHOLE + (LAST if others else ""), **parts)
