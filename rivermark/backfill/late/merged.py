"""Late rows that have been merged into the admitted table, and those that have not.

A row's place (batch, file, line) is the same in both tables, and no two rows share one. So a late
row is merged when the admitted table holds its place. The record of merges, which is written before
the first row moves, only says into which hours any were merged, so that no others are looked at.

No row comes to this process: DuckDB reads the files, and what exceeds its memory goes to a disk. A
merge has Spark read them where they are large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow.compute as pc

from rivermark.backfill.duckdb_comparison import DuckDb
from rivermark.backfill.pending import hours_merged
from rivermark.backfill.spark_comparison import OnSpark
from rivermark.lake.day_predicates import moments_between, moments_predicate
from rivermark.lake.delta import read_delta
from rivermark.lake.lake import Lake
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import connection
from rivermark.model.stream import Ingest
from rivermark.model.time import FIRST, shifted
from rivermark.runtime.spark.input_size import DRIVER_BYTES
from rivermark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rivermark.backfill.comparison import Engine
    from rivermark.lake.table_rows import TableRows

PLACE: Final = ("_ingest_batch", "_file", "_row")
"""Where a row came from: no two rows of an ingest share it."""
NEVER: Final = -1
"""The batch up to which all late rows are known to be merged, where nothing is known."""
MICROSECOND: Final = timedelta(microseconds=1)

OF_LATE: Final = "SEMI JOIN late_rows USING (_ingest_batch, _file, _row)"
ADMITTED_ON_TIME: Final = (
    "(SELECT * FROM admitted_rows ANTI JOIN late_rows USING (_ingest_batch, _file, _row))"
)
"""The admitted rows without those that were merged: what came in time."""

# The late rows are the right side of the join, which is the one that is held in memory.
MERGED: Final = (
    "WITH merged AS (SELECT _ingest_batch, _file, _row FROM admitted_rows {of_late} WHERE {near}), "
    "wanted AS (SELECT * FROM late_rows {kind} JOIN merged USING (_ingest_batch, _file, _row)) "
    "SELECT {what} FROM wanted {more}"
)


@dataclass(frozen=True)
class LateHour:
    """Late rows whose event time lies in the hour that begins at `hour` (UTC), and their money.

    `money` is None where the ingest declares no money column.
    """

    hour: datetime
    rows: int
    money: Decimal | None = None


def merged_by_hour(
    settings: Settings, ingest: Ingest, start: datetime, end: datetime
) -> dict[datetime, LateHour]:
    """The late rows of [start, end) that the admitted table holds, by hour."""
    if not hours_merged(settings.lake(), ingest.name, FIRST):
        return {}
    with _late_rows(settings, ingest, NEVER, (start, end)) as late:
        return late.by_hour("SEMI") if late else {}


def unmerged_by_hour(
    settings: Settings,
    ingest: Ingest,
    span: tuple[datetime, datetime] | None = None,
    *,
    after: int = NEVER,
    spark: Callable[[], SparkSession] | None = None,
) -> dict[datetime, LateHour]:
    """The late rows that the admitted table does not hold, by hour, of all times by default.

    Of batches up to `after` all late rows are known to be merged: they are not read.
    """
    with _late_rows(settings, ingest, after, span, spark) as late:
        return late.by_hour("ANTI") if late else {}


def newest_merged(
    settings: Settings, ingest: Ingest, *, after: int, spark: Callable[[], SparkSession]
) -> int:
    """The newest batch up to which every late row is merged, at least `after`."""
    with _late_rows(settings, ingest, after, None, spark) as late:
        if late is None:
            return after
        [(first,)] = late.select("ANTI", "min(_ingest_batch)")
        return int(late.newest_batch if first is None else first - 1)


@dataclass(frozen=True)
class _Late:
    """`late_rows` and `admitted_rows`, as an engine has them.

    `merged` is the span of all hours into which any were merged; None where none ever were.
    """

    engine: Engine
    ingest: Ingest
    span: tuple[datetime, datetime]
    newest_batch: int
    merged: tuple[datetime, datetime] | None

    def by_hour(self, kind: Literal["SEMI", "ANTI"]) -> dict[datetime, LateHour]:
        """The rows that are merged (SEMI) or not (ANTI), by hour."""
        time, money = self.ingest.contract.event_time, self.ingest.money
        hour = f"date_trunc('hour', {self.engine.name(time)})"
        amounts = f"sum({self.engine.name(money)})" if money else "NULL"
        rows = self.select(kind, f"{hour} AS hour, count(*), {amounts}", "GROUP BY 1 ORDER BY 1")
        nothing = Decimal(0) if money else None
        hours = (LateHour(at.astimezone(UTC), n, total or nothing) for at, n, total in rows)
        return {each.hour: each for each in hours}

    def select(
        self, kind: Literal["SEMI", "ANTI"], what: str, more: str = ""
    ) -> list[tuple[Any, ...]]:
        """The answer of a query over the rows that are merged (SEMI) or not (ANTI)."""
        near = "false"
        if self.merged is not None:
            oldest, newest = (max(self.span[0], self.merged[0]), min(self.span[1], self.merged[1]))
            time = self.engine.name(self.ingest.contract.event_time)
            near = moments_predicate(time, oldest, shifted(newest, MICROSECOND))
        return self.engine.rows(
            MERGED.format(of_late=OF_LATE, near=near, kind=kind, what=what, more=more)
        )


@contextmanager
def _late_rows(
    settings: Settings,
    ingest: Ingest,
    after: int,
    within: tuple[datetime, datetime] | None,
    spark: Callable[[], SparkSession] | None = None,
) -> Iterator[_Late | None]:
    """The late rows of a span, or of all times, that came after a batch; None if there are none."""
    lake, time = settings.lake(), ingest.contract.event_time
    if not (lake.exists(ingest.late) and lake.exists(ingest.admitted)):
        yield None
        return
    late, admitted = open_table(lake, ingest.late), open_table(lake, ingest.admitted)
    wanted = pc.field("_ingest_batch") > after
    if within is not None:
        wanted &= moments_between(time, *within)
    many = spark is not None and late.size(wanted) > DRIVER_BYTES
    with _engine(lake, ingest, late, admitted, spark if many else None) as engine:
        at = engine.name(time)
        columns = [*PLACE, at, *([engine.name(ingest.money)] if ingest.money else [])]
        own = f"_ingest_batch > {after}"
        if within is not None:
            own += f" AND {moments_predicate(at, *within)}"
        # Names are declared in code, and quoted; the moments are ours.
        engine.keep("late_rows", f"SELECT {', '.join(columns)} FROM late_files WHERE {own}")  # noqa: S608
        ends = f"SELECT max(_ingest_batch), min({at}), max({at}) FROM late_rows"  # noqa: S608
        [(newest_batch, *span)] = engine.rows(ends)
        if newest_batch is None:
            yield None
            return
        hours = hours_merged(lake, ingest.name, FIRST)
        merged = (min(hours), max(hours) + timedelta(hours=1)) if hours else None
        yield _Late(engine, ingest, (span[0], span[1]), newest_batch, merged)


@contextmanager
def _engine(
    lake: Lake,
    ingest: Ingest,
    late: TableRows,
    admitted: TableRows,
    spark: Callable[[], SparkSession] | None,
) -> Iterator[Engine]:
    """Spark where it is to be asked, else DuckDB."""
    if spark is None:
        with connection({"late_files": late, "admitted_rows": admitted}) as duck:
            yield DuckDb(duck, ingest.late)
        return
    session = spark()
    frames = {
        "late_files": read_delta(session, lake.path(ingest.late), late.version),
        "admitted_rows": read_delta(session, lake.path(ingest.admitted), admitted.version),
    }
    yield OnSpark(frames, ingest.late)
