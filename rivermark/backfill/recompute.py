"""Closed days of a stream recomputed: to compare only, or to replace what is published."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from rivermark.backfill.as_of import check_range
from rivermark.backfill.publish import (
    check_replaceable,
    commit_metadata,
    effects_on_sinks,
    publish_days,
)
from rivermark.backfill.registry import Kind, account, register
from rivermark.backfill.result import Reprocessing, TableOutcome
from rivermark.backfill.staging import Staged, keep_rehearsed, rehearsal_path, remove_old, staged
from rivermark.lake.archive import new_id
from rivermark.lake.day_predicates import condition, in_days
from rivermark.lake.delta import delta_table
from rivermark.lake.locks import days_lock
from rivermark.lake.rows_in_files import StagedRows
from rivermark.lake.schema import create_table
from rivermark.model.errors import RivermarkError, VersionNotAvailable
from rivermark.model.stream import AnyStream, Stream
from rivermark.model.table import Table, days_between
from rivermark.quality.publish_gate import audit
from rivermark.runtime.code_version import code_of
from rivermark.runtime.query.recompute import AsOf, check_closed, pin_inputs
from rivermark.runtime.supervision.lineage_events import LineageEvents
from rivermark.settings import Settings

if TYPE_CHECKING:
    from rivermark.model.rows import Rows
    from rivermark.quality.duckdb_evaluator import Rows as AuditedRows


@dataclass(frozen=True, kw_only=True)
class Order:
    """Days (both included) of a stream to recompute, and the versions to read.

    `parameters` are what a what-if changed, as text; `because` is the id of the reprocessing that
    this one follows. `on_step` takes progress in words. With `where_different`, days whose rows are
    the same stay untouched. Raises RivermarkError for a range or a stream that cannot be computed.
    """

    stream: Stream
    first: date
    last: date
    run_id: str
    as_of: AsOf = None
    parameters: Mapping[str, str] | None = None
    because: str | None = None
    on_step: Callable[[str], None] = lambda _: None
    where_different: bool = False

    def __post_init__(self) -> None:
        """Check the range and the stream."""
        check_range(self.first, self.last)
        if self.stream.days is None:
            raise RivermarkError(
                f"'{self.stream.name}' has no days, so it cannot be recomputed by day; to fill "
                f"its tables again: rivermark reset {self.stream.name}"
            )

    @property
    def days(self) -> list[date]:
        """Every day of the range."""
        return days_between(self.first, self.last)


def rehearse(
    spark: SparkSession, settings: Settings, order: Order, *, kind: Kind = "rehearsed"
) -> Reprocessing:
    """Compute the days into tables beside the published ones, and compare.

    Raises PartitionStillOpen where replacing would be refused, VersionNotAvailable for a version
    that is gone.
    """
    lake = settings.lake()
    for table in order.stream.tables:
        if not lake.exists(table):
            raise VersionNotAvailable(
                f"table '{table.name}' does not exist yet, so there is nothing to compare with: "
                f"rivermark run {order.stream.name}"
            )
    remove_old(lake, datetime.now(UTC) - lake.retention)
    with computed(spark, settings, order, kind) as (done, rows):
        for table in order.stream.tables:
            order.on_step(f"keeping the rows of {table.name} beside")
            outcome = done.tables[table.name]
            if not rows.small:
                outcome.side = rehearsal_path(lake, done.id, table)
                rows.frame(spark, table).write.format("delta").save(outcome.side)
            else:
                kept, metadata = rows.ordered(table, order.days), commit_metadata(done, outcome)
                outcome.side = keep_rehearsed(lake, done.id, table, kept, metadata)
    register(lake, done.records())
    return done


def replace(spark: SparkSession, settings: Settings, order: Order) -> Reprocessing:
    """Compute the days and replace what is published of them; rows of other days stay.

    The live stream may go on meanwhile; streams that read the tables skip the replacing commit.
    Raises PartitionStillOpen for days that the stream has not finished, and PublicationBlocked for
    rows that break a critical rule: no table is touched then.
    """
    check_replaceable(order.stream)
    lake = settings.lake()
    for table in order.stream.tables:
        create_table(lake, table)
    with (
        days_lock(lake.path(order.stream.tables[0])),
        computed(spark, settings, order, "replaced") as (done, rows),
    ):
        days = {
            table: done.tables[table.name].difference.days_that_differ()
            if order.where_different
            else order.days
            for table in order.stream.tables
        }
        chosen = [table for table in days if days[table]]
        outputs = {output.table: output for output in order.stream.outputs}
        order.on_step("checking the critical rules")
        audit(lake, order.stream, _audited(done, rows, chosen), instead_of=order.days)
        for table in chosen:
            order.on_step(f"replacing the days in {table.name}")
            new = _rows_of(spark, rows, table, days[table])
            publish_days(lake, order.stream, outputs[table], new, days[table], done)
    register(lake, (r for r in done.records() if r.version_after is not None))
    tell_lineage(settings, order.stream, done)
    return done


def tell_lineage(settings: Settings, stream: AnyStream, done: Reprocessing) -> None:
    """Send OpenLineage events of replaced days, where an address is set for them."""
    if not settings.lineage_to:
        return
    made = {
        table: (outcome.version_after, outcome.difference.rows_after)
        for table, outcome in done.tables.items()
        if outcome.version_after is not None
    }
    events = LineageEvents(settings)
    events.backfill(stream, done.id, done.at, done.seconds, done.inputs, made)
    events.close()


@contextmanager
def computed(
    spark: SparkSession, settings: Settings, order: Order, kind: Kind
) -> Iterator[tuple[Reprocessing, Staged]]:
    """Pin the inputs, compute the days, compare them with what is published."""
    started = time.monotonic()
    lake, stream = settings.lake(), order.stream
    if stream.kind == "append":
        check_closed(lake, stream, order.last)
    now = datetime.now(UTC)
    done = Reprocessing(
        id=new_id(now),
        kind=kind,
        stream=stream.name,
        first=order.first,
        last=order.last,
        at=now,
        run_id=order.run_id,
        by=account(),
        inputs=pin_inputs(lake, stream, order.as_of),
        parameters=order.parameters or {},
        code=code_of(stream),
        because=order.because,
    )
    read = ", ".join(f"{name} version {version}" for name, version in done.inputs.items())
    order.on_step(f"computing {stream.name}, {order.first} to {order.last}, from {read}")
    # As it is now: what others commit while the days are computed touches none of them.
    published = {table.name: delta_table(lake.path(table)) for table in stream.tables}
    days = order.first, order.last
    with staged(spark, lake, done.id, stream, *days, done.inputs, order.on_step) as rows:
        for output in stream.outputs:
            table, before = output.table, published[output.table.name]
            order.on_step(f"comparing with {table.name} version {before.version()}")
            difference = rows.compared(spark, before, table, *days)
            done.tables[table.name] = TableOutcome(
                table.name, before.version(), difference, sinks=effects_on_sinks(output)
            )
        yield done, rows
    done.seconds = round(time.monotonic() - started, 3)


def _audited(
    done: Reprocessing, rows: Staged, tables: Iterable[Table]
) -> list[tuple[Table, AuditedRows]]:
    """The rows of each table as the audit reads them."""
    days = days_between(done.first, done.last)
    return [(t, rows.ordered(t, days) if rows.small else rows.rows(t)) for t in tables]


def _rows_of(spark: SparkSession, rows: Staged, table: Table, days: list[date]) -> Rows:
    """The computed rows of some days of a table, in pieces and by Spark where they are many."""
    if rows.small:
        return rows.ordered(table, days)
    framed = rows.frame(spark, table).where(condition(table, days))
    return StagedRows(rows.rows(table).filter(in_days(table, days)), framed)
