"""Merges late rows into the admitted table, exactly once, beside the live ingest.

A span of whole hours is replaced by its rows and the late ones that it lacks, in one commit under
the table's lock. A row is identified by its place, so a repetition adds nothing, and a kill leaves
all of a span's late rows in the table or none. The commit removes files: streams that follow the
table skip it, as they skip a recompute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from pyspark.sql import functions as F

from rivermark.backfill.late.days import LateDay
from rivermark.backfill.late.hours import bounds
from rivermark.backfill.late.merged import PLACE
from rivermark.lake.day_predicates import moments_between, moments_predicate
from rivermark.lake.delta import damage_named, dataset_of, delta_table, read_delta, read_rows
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.quoting import quoted
from rivermark.lake.replace import replace_span
from rivermark.lake.sql import query
from rivermark.lake.stream_safe_replace import SECOND, whole_second
from rivermark.model.stream import Ingest
from rivermark.model.time import shifted
from rivermark.runtime.spark.input_size import DRIVER_BYTES

if TYPE_CHECKING:
    from pyarrow import dataset
    from pyspark.sql import DataFrame, SparkSession

    from rivermark.lake.table_rows import TableRows

HOUR: Final = timedelta(hours=1)
ROWS_AT_ONCE: Final = 500_000
"""About so many rows one commit writes again, while the ingest waits."""
NEIGHBOURS: Final = (timedelta(days=1), timedelta(days=30), timedelta(days=3_652_000))
TRIES: Final = 5

NEW: Final = "SELECT l.* FROM late_rows l ANTI JOIN held USING (_ingest_batch, _file, _row)"


@dataclass
class MergedDay:
    """A day of an admitted table, and the late rows merged into it with their money.

    `rows` and `money` are those of the whole day afterwards; money is None where the ingest
    declares no money column.
    """

    stream: str
    day: date
    rows: int = 0
    rows_merged: int = 0
    money: Decimal | None = None
    money_merged: Decimal | None = None
    conflicts: int = 0

    @property
    def rows_before(self) -> int:
        """Rows of the day without those that were merged now."""
        return self.rows - self.rows_merged

    @property
    def money_before(self) -> Decimal | None:
        """Their money."""
        if self.money is None or self.money_merged is None:
            return None
        return self.money - self.money_merged


def merge_day(
    lake: Lake,
    ingest: Ingest,
    day: LateDay,
    late_version: int,
    metadata: dict[str, Any],
    spark: Callable[[], SparkSession],
) -> MergedDay:
    """Merge the late rows of a closed day into the admitted table; merged ones are left out.

    Late rows that came after `late_version` of the late table are left for the next merge.
    """
    merged = MergedDay(ingest.name, day.day)
    if ingest.money is not None:
        merged.money_merged = Decimal(0)
    late = dataset_of(delta_table(lake.path(ingest.late), version=late_version))
    hours = sorted(hour.hour for hour in day.hours)
    for start, end in _spans(lake, ingest, hours):
        for tries_left in reversed(range(TRIES)):
            try:
                _merge_span(lake, ingest, late, start, end, metadata, merged, spark)
                break
            except CommitFailedError:
                # On a store without locks another writer was faster. Nothing was committed.
                merged.conflicts += 1
                if not tries_left:
                    raise
    merged.rows, merged.money = _totals(lake, ingest, day.day)
    return merged


def _merge_span(
    lake: Lake,
    ingest: Ingest,
    late: TableRows,
    start: datetime,
    end: datetime,
    metadata: dict[str, Any],
    merged: MergedDay,
    spark: Callable[[], SparkSession],
) -> None:
    time, path = ingest.contract.event_time, lake.path(ingest.admitted)
    own = moments_between(time, start, end)
    with commit_lock(path):
        table = delta_table(path)
        rows = dataset_of(table)
        with damage_named(rows, late):
            held, added = rows.count_rows(filter=own), late.count_rows(filter=own)
        size = _size(rows, own, held) + _size(late, own, added)
        if not held:
            start, end = _widened(rows, time, start, end)
        new: DataFrame | pa.Table
        both: DataFrame | pa.Table
        if size > DRIVER_BYTES:
            new, both = _both_by_spark(spark(), ingest, table, late.version, lake, (start, end))
            amounts = F.sum(ingest.money) if ingest.money else F.lit(None)
            [(count, money)] = new.agg(F.count(F.lit(1)), amounts).collect()
        else:
            old = read_rows(rows, filter=moments_between(time, start, end))
            new = _not_held(read_rows(late, filter=own), old)
            both = pa.concat_tables([old, new.select(old.column_names).cast(old.schema)])
            count, money = new.num_rows, pc.sum(new[ingest.money]).as_py() if ingest.money else None
        if count:
            replace_span(lake, ingest.admitted, table, both, time, start, end, metadata)
    merged.rows_merged += count
    if merged.money_merged is not None:
        merged.money_merged += money or Decimal(0)


def _size(rows: TableRows, own: dataset.Expression, count: int) -> int:
    """Bytes that so many such rows take in their files, by the mean of these: some are wide."""
    near = rows.near(own)
    with damage_named(near):
        return rows.size(own) * count // max(1, int(near.count_rows()))


def _both_by_spark(
    spark: SparkSession,
    ingest: Ingest,
    table: DeltaTable,
    late_version: int,
    lake: Lake,
    span: tuple[datetime, datetime],
) -> tuple[DataFrame, DataFrame]:
    """The late rows of a span whose place no admitted row has, and all rows with these."""
    within = moments_predicate(ingest.contract.event_time, *span)
    held = read_delta(spark, lake.path(ingest.admitted), table.version()).where(within)
    late = read_delta(spark, lake.path(ingest.late), late_version).where(within)
    new = late.join(held.select(*PLACE), [*PLACE], "left_anti").dropDuplicates([*PLACE])
    return new, held.unionByName(new.select(*held.columns))


def _not_held(late: pa.Table, held: pa.Table) -> pa.Table:
    """The late rows whose place no held row has, each once."""
    from pyarrow import dataset as ds  # It imports pandas, which takes a second.

    numbered = late.append_column("_n", pa.array(range(late.num_rows), pa.int64()))
    places = numbered.select([*PLACE, "_n"])
    rows = query(
        f"SELECT min(_n) AS n FROM ({NEW}) GROUP BY _ingest_batch, _file, _row ORDER BY n",  # noqa: S608
        {"late_rows": ds.dataset(places), "held": ds.dataset(held.select(list(PLACE)))},
    )
    return late.take(pa.array([row["n"] for row in rows], pa.int64()))


def _spans(
    lake: Lake, ingest: Ingest, hours: list[datetime]
) -> Iterator[tuple[datetime, datetime]]:
    """Spans of whole hours around the hours with late rows, each of a bounded number of rows."""
    rows = dataset_of(delta_table(lake.path(ingest.admitted)))
    time = ingest.contract.event_time
    with damage_named(rows):
        total = rows.count_rows(filter=moments_between(time, hours[0], hours[-1] + HOUR))
    pieces = max(1, -(-total // ROWS_AT_ONCE))
    size = max(1, -(-len(hours) // pieces))
    for n in range(0, len(hours), size):
        piece = hours[n : n + size]
        yield piece[0], piece[-1] + HOUR


def _widened(
    rows: dataset.Dataset, time: str, start: datetime, end: datetime
) -> tuple[datetime, datetime]:
    """The span, widened to the nearest row, or streams would take it as new.

    Looked for in wider and wider spans, so that few files are opened.
    """
    column = quoted(time)
    for reach in NEIGHBOURS:
        [nearest] = query(
            f"SELECT max({column}) FILTER (WHERE {column} < $start) AS before,"  # noqa: S608
            f" min({column}) FILTER (WHERE {column} >= $end) AS after FROM rows"
            f" WHERE ({column} >= $first AND {column} < $start)"
            f" OR ({column} >= $end AND {column} <= $last)",
            {"rows": rows},
            {
                "start": start,
                "end": end,
                "first": shifted(start, -reach),
                "last": shifted(end, reach),
            },
        )
        before, after = nearest["before"], nearest["after"]
        if before is not None and (after is None or start - before <= after - end):
            return whole_second(before), end
        if after is not None:
            return start, whole_second(after) + SECOND
    return start, end  # An empty table: no stream has read rows of it.


def _totals(lake: Lake, ingest: Ingest, day: date) -> tuple[int, Decimal | None]:
    """Rows of a day of the admitted table, and their money."""
    time = quoted(ingest.contract.event_time)
    money = f"sum({quoted(ingest.money)})" if ingest.money else "NULL"
    start, end = bounds(day, day, ingest.days)
    row = query(
        f"SELECT count(*) AS n, {money} AS money FROM admitted_rows"  # noqa: S608 - declared, quoted
        f" WHERE {time} >= $start AND {time} < $end",
        {"admitted_rows": dataset_of(delta_table(lake.path(ingest.admitted)))},
        {"start": start, "end": end},
    )[0]
    return row["n"], (row["money"] or Decimal(0)) if ingest.money else None
