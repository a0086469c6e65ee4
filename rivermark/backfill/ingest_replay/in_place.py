"""Rows of an ingest put in the place of others, and put back: what was decided beside, published.

Each table is replaced by one commit that streams skip. A kill between two of them leaves a list of
days that are pending, and the same command again does what is left: what differs is looked for in
the tables as they are, and first come the quarantine and the admitted table, by which the late one
tells what was merged. The raw rows come last, from which a file is known to have been read before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final, TypeAlias
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from rivermark.backfill.affected_days import Changed, all_affected_days
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.difference import Difference
from rivermark.backfill.downstream import DownstreamResult, recompute_downstream
from rivermark.backfill.erasure.record import erased_places
from rivermark.backfill.ingest_replay.decisions import Decisions
from rivermark.backfill.ingest_replay.scope import Engine, Opened, Scope, engine_over
from rivermark.backfill.late.hours import day_of
from rivermark.backfill.late.merge_log import expect_unmerged, interrupted_merges
from rivermark.backfill.pending import (
    PENDING_AND_MERGES,
    add_pending,
    open_causes,
    pending_days,
    resolve_pending,
)
from rivermark.backfill.publish import version_of
from rivermark.backfill.recompute import tell_lineage
from rivermark.backfill.registry import Kind, account, newest_records, register
from rivermark.backfill.result import Reprocessing, TableOutcome
from rivermark.ingest.lookup_table import LookupTable
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.archive import new_id
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.delta import dataset_of, delta_table, read_rows
from rivermark.lake.lake import Lake
from rivermark.lake.locks import try_merge_lock
from rivermark.lake.log import Commit, CommitLog
from rivermark.lake.quoting import quoted_text
from rivermark.lake.replace import replace_rows
from rivermark.lake.schema import create_table
from rivermark.lake.sql import spilling_connection
from rivermark.lake.statistics import file_sizes
from rivermark.lake.system_tables import rows_of
from rivermark.model.contract import REPLACED
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import Ingest
from rivermark.model.table import Table
from rivermark.runtime.spark.input_size import DRIVER_BYTES

OUTCOMES: Final = ("admitted", "late", "quarantined")
Query: TypeAlias = Callable[[Engine], str]
COUNTED: Final = """
SELECT _file, _ingest_batch, count(*) FILTER (kind = 'admitted') AS admitted,
       count(*) FILTER (kind = 'late') AS late,
       count(*) FILTER (kind = 'quarantined') AS quarantined
FROM (
    SELECT _file, _ingest_batch, 'admitted' AS kind
    FROM (SELECT * FROM admitted_rows WHERE {scope})
    ANTI JOIN (SELECT * FROM late_rows WHERE {scope}) USING (_ingest_batch, _file, _row)
    UNION ALL SELECT _file, _ingest_batch, 'late' FROM late_rows WHERE {scope}
    UNION ALL SELECT _file, _ingest_batch, 'quarantined' FROM quarantined_rows
    WHERE {scope} AND _row IS NOT NULL
      AND NOT coalesce(array_contains(reasons, '{replaced}'), false)
) GROUP BY ALL
"""


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """The rows to put in place: a query for each table, over tables by name, in their order.

    `order` says what was asked for: what a kill interrupted is finished by the same order alone,
    with the id and the versions of `earlier`. `differences` are by table. `ledger` are the rows of
    `ops/ingest_files`; without them those of the scope are counted again.
    """

    ingest: Ingest
    order: Sequence[Any]
    scope: Scope
    queries: Mapping[Table, Query]
    reads: Mapping[str, Opened]
    differences: Mapping[Table, Difference]
    days: tuple[date, date] | None = None
    ledger: Sequence[Mapping[str, Any]] | None = None
    kind: Kind = "replaced"
    because: str | None = None
    earlier: Commit | None = None

    @property
    def hours(self) -> frozenset[datetime]:
        """The hours of event time in which rows differ."""
        return frozenset().union(*(each.hours for each in self.differences.values()))


@contextmanager
def alone(lake: Lake) -> Iterator[None]:
    """Keep merges of late rows and other replacements out. Raises RivermarkError where one runs."""
    create_table(lake, PENDING_AND_MERGES)
    with try_merge_lock(lake.path(PENDING_AND_MERGES)) as held:
        if not held:
            raise RivermarkError(
                "late rows are being merged, or rows of an ingest replaced, in this lake; try "
                "again later"
            )
        yield


def put_in_place(
    context: BackfillContext, new: Replacement
) -> tuple[Reprocessing | None, DownstreamResult]:
    """Replace the rows of the scope, and recompute the closed days downstream that differ.

    Days that are pending already are recomputed along with them; open ones stay pending. Where
    nothing differs, nothing is replaced.
    """
    lake, topology, run_id = context.lake, context.topology, context.run_id
    done, cause = None, uuid4().hex
    causes = open_causes(lake) - interrupted_merges(lake)
    pending = pending_days(lake, topology)
    # Rows of a lookup are of no day.
    by_day = new.ingest.kind == "events"
    changed = {new.ingest.admitted.name: Changed.in_hours(new.hours)} if by_day else {}
    if new.queries or new.earlier:
        done = _reprocessing(context, new)
        cause = done.id
        add_pending(lake, cause, all_affected_days(topology, changed), run_id)
        expect_unmerged(lake, new.ingest, new.scope.first, cause, run_id)
        _replace_tables(context, new, done)
        register(lake, done.records())
        tell_lineage(context.settings, new.ingest, done)
        context.on_done(done)
    result = recompute_downstream(context, changed, pending, because=cause, refresh=True)
    left = uuid4().hex, result.pending
    resolve_pending(lake, causes | ({cause} if done else set()), left, run_id)
    return done, result


def interrupted(lake: Lake, ingest: Ingest, order: Sequence[Any]) -> Commit | None:
    """The newest commit of the same order, where it was not finished: it is in no register."""
    for table in (ingest.quarantine, ingest.versions, ingest.late):
        commit = newest_replacement(lake, table)
        if commit is not None and commit.metadata["order"] == [*order]:
            known = {record.id for record in newest_records(lake, ingest.name, 1000)}
            return None if commit.metadata["reprocessing"] in known else commit
    return None


def newest_replacement(lake: Lake, table: Table) -> Commit | None:
    """The newest commit that replaced rows of an ingest's table, or put them back."""
    return next((c for c in CommitLog(lake.path(table)).backwards() if "scope" in c.metadata), None)


def _reprocessing(context: BackfillContext, new: Replacement) -> Reprocessing:
    now, lake, ingest = datetime.now(UTC), context.lake, new.ingest
    kept: Mapping[str, Any] = new.earlier.metadata if new.earlier else {}
    days = sorted({day_of(hour, ingest.days) for hour in new.hours}) or [now.date()]
    first, last = new.days or (days[0], days[-1])
    tables = {
        table.name: TableOutcome(
            table.name,
            kept["tables"][table.name] if kept else _version(lake, table),
            difference,
        )
        for table, difference in new.differences.items()
    }
    return Reprocessing(
        id=kept["reprocessing"] if kept else new_id(now),
        kind=new.kind,
        stream=ingest.name,
        first=first,
        last=last,
        at=now,
        run_id=context.run_id,
        by=account(),
        inputs={ingest.raw.name: _version(lake, ingest.raw)},
        because=new.because,
        tables=tables,
    )


def _version(lake: Lake, table: Table) -> int:
    return int(delta_table(lake.path(table)).version())


def _replace_tables(context: BackfillContext, new: Replacement, done: Reprocessing) -> None:
    lake, ingest = context.lake, new.ingest
    metadata: dict[str, Any] = {
        "stream": ingest.name,
        "run": done.run_id,
        "reprocessing": done.id,
        "kind": done.kind,
        "order": [*new.order],
        "scope": new.scope.to_json(),
        "tables": {name: outcome.version_before for name, outcome in done.tables.items()},
        "ledger": new.earlier.metadata["ledger"] if new.earlier else _version(lake, INGEST_FILES),
        **({"because": done.because} if done.because else {}),
    }
    for table, query in new.queries.items():
        context.on_step(f"replacing rows of {table.name}")
        _replace(context, new, table, query, metadata)
    if ingest.kind == "lookup":
        many = sum(file_sizes(delta_table(lake.path(ingest.versions)))) > DRIVER_BYTES
        LookupTable(lake, ingest).rebuild(metadata, context.spark() if many else None)
    rows = recounted(lake, ingest, new.scope) if new.ledger is None else new.ledger
    where = new.scope.sql(batch="ingest_batch", file="file")
    own = f"stream = {quoted_text(ingest.name)} AND {where}"
    replace_rows(lake, INGEST_FILES, rows_of(INGEST_FILES, rows), own, metadata)
    for table in new.differences:
        done.tables[table.name].version_after = version_of(lake, table, done.id)


def _replace(
    context: BackfillContext,
    new: Replacement,
    table: Table,
    query: Query,
    metadata: dict[str, Any],
) -> None:
    with engine_over(context, new.reads, table, new.scope) as engine:
        rows = engine.result(query(engine))
        where = new.scope.sql(spark=engine.on_spark)
        if isinstance(rows, pa.RecordBatchReader):
            replace_rows(context.lake, table, _fitted(rows.read_all(), table), where, metadata)
        else:
            replace_rows(context.lake, table, rows.to(table.schema), where, metadata)


def _fitted(rows: pa.Table, table: Table) -> pa.Table:
    """The rows by the declared columns: of before one was added they have none."""
    schema = arrow_schema(table.schema)
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def recounted(lake: Lake, ingest: Ingest, scope: Scope) -> list[dict[str, Any]]:
    """The outcomes of a scope's files, with the rows that the tables hold of them now."""
    outcomes = outcomes_of(lake, ingest, scope)
    tables = Decisions(ingest).tables()
    rows = {name: dataset_of(delta_table(lake.path(table))) for name, (table, _) in tables.items()}
    with spilling_connection(rows) as duck:
        counted = duck.execute(COUNTED.format(scope=scope.sql(), replaced=REPLACED)).fetchall()
    by_file = {(file, batch): counts for file, batch, *counts in counted}
    gone = erased_places(lake, ingest.name)
    for row in outcomes:
        if row["status"] == "read":
            file = row["file"], row["ingest_batch"]
            for name, count in zip(OUTCOMES, by_file.get(file, (0, 0, 0)), strict=True):
                # Erased rows count as what they were.
                row[name] = count + sum(place[:2] == file for place in gone.get(name, ()))
    return outcomes


def outcomes_of(
    lake: Lake, ingest: Ingest, scope: Scope, version: int | None = None
) -> list[dict[str, Any]]:
    """The outcomes of a scope's files, as they are recorded, or were at a version of the record."""
    own = scope.filter("ingest_batch", "file") & (pc.field("stream") == ingest.name)
    record = dataset_of(delta_table(lake.path(INGEST_FILES), version))
    outcomes: list[dict[str, Any]] = read_rows(record, filter=own).to_pylist()
    return outcomes
