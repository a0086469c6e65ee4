"""Closed days of a stream computed again: to compare only, or to replace what is published."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.backfill.code_version import code_of
from rivermark.backfill.comparison import compare
from rivermark.backfill.registry import Kind, new_id, remember, whoever
from rivermark.backfill.rehearsal_table import forget_side_tables, side_path, write_side_table
from rivermark.backfill.result import Reprocessing, TableOutcome
from rivermark.backfill.staging import MARK, Staged, staged
from rivermark.lake.day_predicates import condition
from rivermark.lake.lake import Lake
from rivermark.lake.locks import days_lock
from rivermark.lake.log import CommitLog
from rivermark.lake.replace import replace_days
from rivermark.lake.schema import create_table
from rivermark.model.errors import RivermarkError, VersionNotAvailable
from rivermark.model.stream import Stream
from rivermark.model.table import Table, days_between
from rivermark.quality.publish_gate import audit
from rivermark.runtime.query.recompute import AsOf, build_range, check_closed, pin_inputs
from rivermark.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa

    from rivermark.quality.duckdb_evaluator import Rows

MANY_ROWS: Final = 5_000_000
"""More than these are put in place by the engine instead of from this process's memory."""


OnStep = Callable[[str], None]


def silent(_step: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be computed again: days (both included) of a stream, from which versions.

    `parameters` are what a what-if changed, as text; `because` is the id of the reprocessing that
    this one follows. `on_step` hears in words what is done now. `where_different` says that days
    whose rows are the same stay untouched.
    """

    stream: Stream
    first: date
    last: date
    run_id: str
    as_of: AsOf = None
    parameters: Mapping[str, str] | None = None
    because: str | None = None
    on_step: OnStep = silent
    where_different: bool = False

    def __post_init__(self) -> None:
        """Refuse what no computing could answer."""
        if self.last < self.first:
            raise RivermarkError(f"the range ends ({self.last}) before it begins ({self.first})")
        if self.stream.days is None:
            raise RivermarkError(
                f"'{self.stream.name}' is not kept by days: it cannot be computed again by day; "
                f"to fill its tables anew: rivermark reset {self.stream.name}"
            )

    @property
    def days(self) -> list[date]:
        """Every day of the range."""
        return days_between(self.first, self.last)


def rehearse(
    spark: SparkSession, settings: Settings, order: Order, *, kind: Kind = "rehearsed"
) -> Reprocessing:
    """Compute the days into side tables and compare; nothing published is touched.

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
    forget_side_tables(lake, datetime.now(UTC) - lake.promise)
    with computed(spark, settings, order, kind) as (done, rows):
        for table in order.stream.tables:
            outcome = done.tables[table.name]
            order.on_step(f"keeping the rows of {table.name} beside")
            outcome.side = _keep(spark, lake, done, rows, table, outcome)
    remember(lake, done.records())
    return done


def replace(spark: SparkSession, settings: Settings, order: Order) -> Reprocessing:
    """Compute the days and put them in place of what is published; rows of other days stay.

    The live stream may go on meanwhile; streams that read the tables skip the replacing commit.
    Raises PartitionStillOpen for days that the stream has not finished, and PublicationBlocked for
    rows that break a critical rule: no table is touched then.
    """
    lake = settings.lake()
    for table in order.stream.tables:
        create_table(lake, table)
    with (
        days_lock(lake.path(order.stream.tables[0])),
        computed(spark, settings, order, "replaced") as (done, rows),
    ):
        days = {table: days_to_replace(order, done, table) for table in order.stream.tables}
        chosen = [table for table, mine in days.items() if mine]
        order.on_step("asking the rows for the critical rules")
        audit(lake, order.stream, audited(done, rows, chosen), instead_of=order.days)
        for table in chosen:
            order.on_step(f"replacing the days in {table.name}")
            put_in_place(spark, lake, done, rows, table, days[table])
    remember(lake, (r for r in done.records() if r.version_after is not None))
    return done


def days_to_replace(order: Order, done: Reprocessing, table: Table) -> list[date]:
    """All days of the order, or those that differ where no more was asked for."""
    if not order.where_different:
        return order.days
    return done.tables[table.name].difference.days_that_differ()


@contextmanager
def computed(
    spark: SparkSession, settings: Settings, order: Order, kind: Kind
) -> Iterator[tuple[Reprocessing, Staged]]:
    """Pin the inputs, compute the days, compare them with what is published."""
    began = time.monotonic()
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
        by=whoever(),
        inputs=pin_inputs(lake, stream, order.as_of),
        parameters=order.parameters or {},
        code=code_of(stream),
        because=order.because,
    )
    read = ", ".join(f"{name} version {version}" for name, version in done.inputs.items())
    order.on_step(f"computing {stream.name}, {order.first} to {order.last}, from {read}")
    # As it is now: what others commit while the days are computed touches none of them.
    published = {table.name: DeltaTable(lake.path(table)) for table in stream.tables}
    built = build_range(spark, lake, stream, order.first, order.last, done.inputs)
    with staged(lake, done.id, stream, built, order.first, order.last) as rows:
        for table in stream.tables:
            before = published[table.name]
            order.on_step(f"comparing with {table.name} version {before.version()}")
            done.tables[table.name] = TableOutcome(
                table.name,
                before.version(),
                compare(
                    before.to_pyarrow_dataset(),
                    rows.rows(table),
                    table,
                    order.first,
                    order.last,
                ),
            )
        yield done, rows
    done.seconds = round(time.monotonic() - began, 3)


def audited(done: Reprocessing, rows: Staged, tables: Iterable[Table]) -> list[tuple[Table, Rows]]:
    """The rows of each table as the audit reads them."""
    days = days_between(done.first, done.last)
    return [
        (
            table,
            rows.rows(table)
            if done.tables[table.name].difference.rows_after > MANY_ROWS
            else rows.ordered(table, days),
        )
        for table in tables
    ]


def put_in_place(
    spark: SparkSession,
    lake: Lake,
    done: Reprocessing,
    rows: Staged,
    table: Table,
    days: list[date],
) -> None:
    """Replace the days of one table by what was computed, and note which version that made."""
    outcome = done.tables[table.name]
    new: DataFrame | pa.Table
    if outcome.difference.rows_after > MANY_ROWS:
        new = frame_of(spark, rows, table).where(condition(table, days))
    else:
        new = rows.ordered(table, days)
    replace_days(lake, table, new, days, told(done, outcome), on_conflict=outcome.met_conflict)
    outcome.version_after = version_of(lake, table, done.id)


def told(done: Reprocessing, outcome: TableOutcome) -> dict[str, Any]:
    """What the commit says of itself: all that an undo needs, should the register lack it."""
    found: dict[str, Any] = {
        "stream": done.stream,
        "recompute": [done.first.isoformat(), done.last.isoformat()],
        "run": done.run_id,
        "inputs": dict(done.inputs),
        "reprocessing": done.id,
        "kind": done.kind,
        "before": outcome.version_before,
        "code": done.code,
    }
    return found | ({"because": done.because} if done.because else {})


def version_of(lake: Lake, table: Table, name: str) -> int | None:
    """The version that a reprocessing made of a table, by the table's own log."""
    log = CommitLog(lake.path(table)).backwards()
    return next((c.version for c in log if c.metadata.get("reprocessing") == name), None)


def frame_of(spark: SparkSession, rows: Staged, table: Table) -> DataFrame:
    """The staged rows of a table for the engine."""
    found = spark.read.parquet(rows.folder)
    mine = found.where(F.col(f"{MARK}{rows.tables.index(table)}"))
    return mine.select(*table.schema.fieldNames())


def _keep(
    spark: SparkSession,
    lake: Lake,
    done: Reprocessing,
    rows: Staged,
    table: Table,
    outcome: TableOutcome,
) -> str:
    """Keep the computed rows of a table beside the published ones; tells where."""
    if outcome.difference.rows_after > MANY_ROWS:
        path = side_path(lake, done.id, table)
        frame_of(spark, rows, table).write.format("delta").save(path)
        return path
    found = rows.ordered(table, days_between(done.first, done.last))
    return write_side_table(lake, done.id, table, found, told(done, outcome))
