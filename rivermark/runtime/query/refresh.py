"""The query of a refreshing stream: whatever days a batch touches are computed again, whole."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.lake.day_predicates import condition, day_column, days_of
from rivermark.lake.delta import delta_stream, read_delta
from rivermark.lake.lake import Lake
from rivermark.lake.locks import days_lock
from rivermark.lake.replace import replace_days
from rivermark.lake.schema import create_table
from rivermark.lake.written import note_written
from rivermark.model.errors import RivermarkError
from rivermark.model.sink import Origin, owned
from rivermark.model.stream import Output, Stream, table_of
from rivermark.model.table import Table
from rivermark.quality.publish_gate import audit
from rivermark.quality.publish_staging import staged
from rivermark.runtime.batch_metrics import WITHOUT_A_DAY, BatchResult
from rivermark.runtime.query.base import QueryHost
from rivermark.runtime.query.build import apply_build
from rivermark.runtime.query.static_tables import StaticTables
from rivermark.runtime.spark.input_size import fits_driver
from rivermark.settings import Settings
from rivermark.sinks.output import replace_in_others, sinks_of

if TYPE_CHECKING:
    from rivermark.quality.duckdb_evaluator import Rows

DAY: Final = timedelta(days=1)
TWO_DAYS: Final = 2 * DAY
"""Between a moment's date in UTC and in any zone lies one day; another is room for borders."""


class RefreshHost(QueryHost):
    """Hosts a refreshing stream. It keeps no state but its place in the input's log."""

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        stream: Stream,
        run_id: str,
        check: Callable[[], None] = owned,
    ) -> None:
        super().__init__(spark, settings, stream, run_id, check)
        self.declared = stream
        for table in stream.tables:
            create_table(self.lake, table)
        self.trigger.inputs += [self.lake.path(table_of(read)) for read in stream.reads]

    def read(self) -> DataFrame:
        """New rows of the first input, by their day.

        Where days of the input were replaced, their rows come again: those days are computed again
        from what is there now, so nothing is doubled. A day that was emptied is not noticed.
        """
        path = self.lake.path(table_of(self.declared.reads[0]))
        reader = delta_stream(self.spark, path).option("ignoreChanges", "true")
        reader = reader.option("maxFilesPerTrigger", str(self.settings.files_per_trigger))
        if self.from_first_commit(path):
            # A snapshot takes Spark jobs of its own, to find its files and to order them.
            reader = reader.option("startingVersion", "0")
        rows = reader.load(path)
        day, event_time = touched_day(self.declared), table_of(self.declared.reads[0]).event_time
        away = F.abs(F.datediff(day, event_time)) if event_time else F.lit(0)
        return rows.select(day.alias("day"), away.alias("away"))

    def write(self, frame: DataFrame, batch: int) -> BatchResult:
        """Compute the touched days again from the whole input, and replace them."""
        touched = touched_by(frame)
        days, rows_in, away = touched.days, touched.rows, timedelta(days=touched.away)
        if not days:
            return BatchResult(rows_in=rows_in, counters=_dayless(touched.dayless))
        if away > reach(self.declared):
            raise RivermarkError(
                f"stream '{self.stream.name}': a row lies {away.days} days from the day that it "
                "touches, and would not be read when that day is computed; declare a `margin` of "
                f"at least {(away - TWO_DAYS).days} days"
            )
        metadata = {
            "stream": self.stream.name,
            "generation": self.generation.number,
            "refresh": batch,
            "run": self.run_id,
        }
        with days_lock(self.lake.path(self.declared.tables[0])):
            built = build_days(self.spark, self.lake, self.declared, days)
            rows_out, lost = write_days(
                self.lake, self.declared, built, days, self.origin, metadata, audited=self.bounded
            )
        return BatchResult(
            rows_in=rows_in,
            rows_out=rows_out,
            touched=frozenset(days),
            counters=_dayless(touched.dayless + lost),
        )


def _dayless(rows: int) -> dict[str, int]:
    return {WITHOUT_A_DAY: rows} if rows else {}


class Touched(NamedTuple):
    """Days that rows belong to, how many rows there are, and how many days away their times lie.

    `dayless` of the rows belong to no day.
    """

    days: list[date]
    rows: int
    away: int
    dayless: int


def touched_by(rows: DataFrame) -> Touched:
    """What rows of `day` and `away` touch."""
    counted: pa.Table
    if fits_driver(rows):
        counted = rows.toArrow().group_by("day").aggregate([([], "count_all"), ("away", "max")])
    else:
        counts = F.count(F.lit(1)).alias("count_all"), F.max("away").alias("away_max")
        counted = rows.groupBy("day").agg(*counts).toArrow()
    days = counted["day"].drop_null().to_pylist()
    away = max((each or 0 for each in counted["away_max"].to_pylist()), default=0)
    rows_without = counted.filter(pc.is_null(counted["day"]))["count_all"].to_pylist()
    every = sum(counted["count_all"].to_pylist())
    return Touched(sorted(days), every, away, sum(rows_without))


def reach(stream: Stream) -> timedelta:
    """How far from the day that it touches a row's event time may lie, in whole days."""
    return TWO_DAYS + margin_in_days(stream)


def margin_in_days(stream: Stream) -> timedelta:
    """The stream's margin, rounded up to whole days."""
    return -(-stream.margin // DAY) * DAY


def touched_day(stream: Stream) -> Column:
    """The day of the output that an input row belongs to."""
    if stream.touches is not None:
        return stream.touches()
    event_time = table_of(stream.reads[0]).event_time
    assert event_time is not None  # noqa: S101 - every ingest has one
    return day_column(days_of(stream.tables[0]), event_time)


def touches_days(stream: Stream, days: Collection[date]) -> Column:
    """Whether a row of the first input belongs to one of the days or lies within their margin."""
    first, last, margin = min(days), max(days), margin_in_days(stream)
    day = touched_day(stream)
    near = day.between(F.lit(first - margin), F.lit(last + margin))
    if margin or len(set(days)) == (last - first).days + 1:
        return near
    return near & day.isin(*[F.lit(d) for d in days])


def build_days(
    spark: SparkSession, lake: Lake, stream: Stream, days: Collection[date]
) -> DataFrame:
    """The stream's rows for those days, from its whole input as it is now."""
    first, last = min(days), max(days)
    source = table_of(stream.reads[0])
    rows = read_delta(spark, lake.path(source))
    wanted = touches_days(stream, days)
    if source.event_time is not None:
        # Delta skips files by the statistics of the plain column, not of an expression over it.
        around = reach(stream)
        bounds = (F.lit(first - around).cast("timestamp"), F.lit(last + around).cast("timestamp"))
        wanted = F.col(source.event_time).between(*bounds) & wanted
    others = [read_delta(spark, lake.path(table_of(r))) for r in stream.reads[1:]]
    static = StaticTables(lake, stream)
    static.check()
    inputs = (rows.where(wanted), *others, *static.read(spark))
    return apply_build(stream.name, stream.build, *inputs)


def rows_for(output: Output, built: DataFrame, days: Collection[date]) -> DataFrame:
    """The rows of those days that an output takes, and those that have no day."""
    rows = built if output.where is None else built.where(output.where())
    # Where the day is not known, the condition is not either.
    wanted = F.coalesce(condition(output.table, days), F.lit(True))
    return rows.where(wanted).select(*output.table.schema.fieldNames())


def write_days(
    lake: Lake,
    stream: Stream,
    built: DataFrame,
    days: Collection[date],
    origin: Origin,
    metadata: dict[str, object],
    *,
    audited: bool = True,
) -> tuple[int, int]:
    """Replace the days in each table that the stream writes; returns the number of rows.

    And how many of those that were built have no day, so that they go to no table; these are
    counted where the driver writes the rows. The rows are audited before the first table is touched
    (PublicationBlocked), but those of a live stream.
    """
    lost = 0
    chosen_rows = [rows_for(output, built, days) for output in stream.outputs]
    by_driver = stream.volume == "results" or all(map(fits_driver, chosen_rows))
    with ExitStack() as stack:
        parts: list[tuple[Table, DataFrame | pa.Table]] = []
        audited_rows: list[tuple[Table, Rows]] = []
        for output, chosen in zip(stream.outputs, chosen_rows, strict=True):
            table = output.table
            day = days_of(table).column
            if by_driver:
                every = chosen.toArrow()
                collected = every.filter(pc.is_valid(every[day]))
                lost += every.num_rows - collected.num_rows
                parts.append((table, collected))
                audited_rows.append((table, collected))
                continue
            chosen = chosen.where(F.col(day).isNotNull())
            if audited or len(sinks_of(output)) > 1:
                spark = built.sparkSession
                kept, seen = stack.enter_context(staged(spark, lake, table, chosen))
                parts.append((table, kept))
                audited_rows.append((table, seen))
            else:
                parts.append((table, chosen))
        if audited:
            audit(lake, stream, audited_rows, instead_of=days, kept=not by_driver)
        origin.check()
        name = f"{origin.generation:04d}-{metadata['refresh']:010d}"
        for output, (_, rows) in zip(stream.outputs, parts, strict=True):
            replace_in_others(lake, output, origin, rows, days, name)
        total = 0
        for table, rows in parts:
            count = replace_days(lake, table, rows, days, metadata)
            total += count
            if count:
                note_written(lake, table, origin, int(str(metadata["refresh"])))
        return total, lost
