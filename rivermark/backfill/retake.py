"""A changed file is read again: its rows take the place of those of its former reading.

The new rows keep the batch of the former ones, and none of them is late: every table downstream is
computed again anyway. Each table is replaced by one commit that streams skip. The raw rows come
after all that is made from them, so a repetition of an interrupted command finds the former rows
there, and what was done already is done to the same end.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.backfill.affected_days import HOUR, Changed, all_affected_days
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.downstream import DownstreamResult, recompute_downstream
from rivermark.backfill.pending import PENDING_AND_MERGES, add_pending, resolve_pending
from rivermark.ingest.admission import Admission
from rivermark.ingest.decision import AdmissionPlan, decide
from rivermark.ingest.lookup_table import LookupTable
from rivermark.ingest.plan import open_source
from rivermark.ingest.split_outcomes import INGEST_FILES, SplitOutcome, outcome_row
from rivermark.lake.delta import dataset_of, delta_table, read_rows
from rivermark.lake.lake import Lake
from rivermark.lake.locks import try_merge_lock
from rivermark.lake.replace import replace_rows
from rivermark.lake.schema import arrow_schema, create_table
from rivermark.lake.sql import connection, query
from rivermark.lake.system_tables import rows_of
from rivermark.model.contract import REPLACED
from rivermark.model.errors import RivermarkError
from rivermark.model.source import PlannedSplit, SourceReader, Split
from rivermark.model.stream import Ingest
from rivermark.model.table import Table
from rivermark.model.time import EPOCH, MICROSECOND
from rivermark.runtime.checkpoint.generation import Generation, read_generation

FORMER: Final = """
SELECT r._file, r._row, r._ingest_batch, r._ingested_at, [$reason] AS reasons,
       CASE WHEN a._row IS NOT NULL THEN 'was admitted' WHEN l._row IS NOT NULL THEN 'was late'
            ELSE 'was quarantined: ' || coalesce(array_to_string(q.reasons, ', '), '')
       END AS details,
       NULL::TIMESTAMPTZ AS event_time, r.payload
FROM raw_rows r
LEFT JOIN (SELECT DISTINCT _row FROM admitted_rows) a USING (_row)
LEFT JOIN (SELECT DISTINCT _row FROM late_rows) l USING (_row)
LEFT JOIN (SELECT _row, reasons FROM quarantined_rows
           WHERE NOT coalesce(list_contains(reasons, $reason), false)) q USING (_row)
"""
"""Former rows have no event time in the quarantine: a day counts what came for it once."""


@dataclass(frozen=True)
class Retaken:
    """Result of reading a file again: its former outcome, the new one, and what followed."""

    file: str
    former: dict[str, int]
    outcome: SplitOutcome
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
    create_table(lake, PENDING_AND_MERGES)
    with try_merge_lock(lake.path(PENDING_AND_MERGES)) as held:
        if not held:
            raise RivermarkError("a merge of late rows is running in this lake; try again later")
        ledger = former_reading(lake, ingest, name)
        source = open_source(lake, context.settings.landing_root, ingest)
        try:
            split = _split_now(source, ingest, ledger)
            return _retake(context, ingest, source, split, ledger)
        finally:
            source.close()


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
            f"{ingest.source.unit} '{name}' is not at its source any more, or can never change; "
            "nothing was changed"
        )
    if not isinstance(split, Split) or split.status != "ready":
        raise RivermarkError(f"'{name}' cannot be read: {split.reason}; nothing was changed")
    batch, now = ledger["ingest_batch"], datetime.now(UTC)
    return PlannedSplit(**vars(split), batch=batch, landed_at=now)


def _retake(
    context: BackfillContext,
    ingest: Ingest,
    source: SourceReader,
    split: PlannedSplit,
    ledger: dict[str, Any],
) -> Retaken:
    lake, cause = context.lake, uuid4().hex
    generation = read_generation(lake, ingest) or Generation(0, datetime.now(UTC), 0)
    origin = generation.origin(ingest, context.run_id)
    admission = Admission(context.spark(), lake, ingest, source, origin)
    read = admission.read([split])
    with closing(read.rows):
        if split.name in read.unreadable:
            reason = read.unreadable[split.name]
            raise RivermarkError(f"'{split.name}' cannot be read: {reason}; nothing was changed")
        # Rows that run ahead of the stream are quarantined; none is late.
        on_time = replace(ingest, lateness=None, watermark=None)
        plan = AdmissionPlan.of(read, decide(read, admission.progress, on_time))
        outcome = replace(plan.outcome(split), skipped=0)
        context.on_step(f"{split.name}: {outcome.rows:,} rows read")
        admitted = read.rows.rows("admitted")
        own = _OwnRows(lake, ingest, split)
        before = own.of(ingest.versions)
        changed = _changed(ingest, before, admitted)
        add_pending(lake, cause, all_affected_days(context.topology, changed), context.run_id)
        metadata = {"stream": ingest.name, "retake": split.name, "run": context.run_id}
        raw = read.rows.rows("raw")
        former = own.former(raw)
        quarantined = read.rows.rows("quarantined")
        own.replace(ingest.quarantine, [former, quarantined], metadata)
        own.replace(ingest.late, [], metadata)
        own.replace(ingest.versions, [admitted], metadata)
        if ingest.kind == "lookup":
            LookupTable(lake, ingest).rebuild(metadata)
        own.replace(ingest.raw, [raw], metadata)
        row = outcome_row(ingest.name, outcome) | {"replaced": former.num_rows}
        own.replace_in_ledger(row, metadata)
    source.committed([split])
    context.on_step(f"{split.name}: the rows of its former reading are replaced")
    result = recompute_downstream(context, changed, {}, because=cause, refresh=True)
    resolve_pending(lake, [cause], (uuid4().hex, result.pending), context.run_id)
    counts = {name: ledger[name] or 0 for name in ("rows", "admitted", "late", "quarantined")}
    return Retaken(split.name, counts, outcome, result)


def _changed(ingest: Ingest, before: pa.Table, after: pa.Table) -> dict[str, Changed]:
    """The hours of the admitted rows, former and new; those of a lookup are of no day."""
    if ingest.kind == "lookup":
        return {}
    hours: set[int] = set()
    for rows in (before, after):
        times = rows[ingest.contract.event_time].cast(pa.timestamp("us", "UTC"))
        hours |= {*np.unique(times.cast(pa.int64()).to_numpy() // (HOUR // MICROSECOND)).tolist()}
    return {ingest.admitted.name: Changed.in_hours(EPOCH + hour * HOUR for hour in hours)}


@dataclass(frozen=True)
class _OwnRows:
    """The rows of one file in the tables of its ingest."""

    lake: Lake
    ingest: Ingest
    split: PlannedSplit

    def of(self, table: Table) -> pa.Table:
        own = (pc.field("_file") == self.split.name) & (
            pc.field("_ingest_batch") == self.split.batch
        )
        return read_rows(dataset_of(delta_table(self.lake.path(table))), filter=own)

    def former(self, now: pa.Table) -> pa.Table:
        """All former readings as quarantined rows: the last one's, and those before it.

        A reading of the same text, such as that of an interrupted command, is not kept.
        """
        from pyarrow import dataset  # It imports pandas, which takes a second.

        raw, quarantined = self.of(self.ingest.raw), self.of(self.ingest.quarantine)
        schema = arrow_schema(self.ingest.quarantine.schema)
        is_replaced = pa.array([REPLACED in r for r in quarantined["reasons"].to_pylist()], "bool")
        kept = quarantined.filter(is_replaced).select(schema.names).cast(schema)
        whole = quarantined.filter(pc.and_(pc.invert(is_replaced), pc.is_null(quarantined["_row"])))
        whole = _replaced_whole(whole.select(schema.names).cast(schema))
        read = set(raw["_ingested_at"].to_pylist())
        if read & set(kept["_ingested_at"].to_pylist()):
            # An interrupted command got at least so far.
            return kept
        if _texts(raw).equals(_texts(now)):
            return pa.concat_tables([kept, whole])
        tables = {
            "raw_rows": raw,
            "admitted_rows": self.of(self.ingest.versions),
            "late_rows": self.of(self.ingest.late),
            "quarantined_rows": quarantined,
        }
        with connection({n: dataset.dataset(rows) for n, rows in tables.items()}) as duckdb:
            last = duckdb.sql(FORMER, params={"reason": REPLACED}).to_arrow_table()
        return pa.concat_tables([kept, whole, last.select(schema.names).cast(schema)])

    def replace(self, table: Table, parts: Iterable[pa.Table], metadata: dict[str, Any]) -> None:
        """Put these rows in the place of the file's, in one commit."""
        schema = arrow_schema(table.schema)
        rows = pa.concat_tables(
            [schema.empty_table(), *(p.select(schema.names).cast(schema) for p in parts)]
        )
        where = f"_file = {_literal(self.split.name)} AND _ingest_batch = {self.split.batch}"
        replace_rows(self.lake, table, rows, where, metadata)

    def replace_in_ledger(self, row: dict[str, Any], metadata: dict[str, Any]) -> None:
        where = (
            f"stream = {_literal(self.ingest.name)} AND file = {_literal(self.split.name)}"
            f" AND ingest_batch = {self.split.batch}"
        )
        replace_rows(self.lake, INGEST_FILES, rows_of(INGEST_FILES, [row]), where, metadata)


def _texts(raw: pa.Table) -> pa.Table:
    return raw.select(["_row", "payload"]).sort_by("_row").combine_chunks()


def _replaced_whole(rows: pa.Table) -> pa.Table:
    """Rows that stand for a whole file that could not be read, as those of a former reading."""
    described = [
        {
            **row,
            "reasons": [REPLACED],
            "details": f"was quarantined: {', '.join(row['reasons'])}",
        }
        for row in rows.to_pylist()
    ]
    return pa.Table.from_pylist(described, rows.schema)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
