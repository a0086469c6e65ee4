"""The query of a refreshing stream: whatever days a batch touches are computed again, whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.lake.day_predicates import condition, day_column, days_of
from rivermark.lake.delta import delta_stream, read_delta
from rivermark.lake.lake import Lake
from rivermark.lake.locks import days_lock
from rivermark.lake.replace import replace_days
from rivermark.lake.rows_in_files import stage
from rivermark.lake.schema import create_table
from rivermark.lake.written import note_written
from rivermark.model.errors import RivermarkError
from rivermark.model.rows import BatchRows, Collected
from rivermark.model.sink import Origin, owned
from rivermark.model.stream import Output, Stream, table_of
from rivermark.model.table import Table, days_between
from rivermark.model.time import shifted
from rivermark.operators.finished import cut
from rivermark.operators.reach import BuildReach
from rivermark.quality.publish_gate import audit
from rivermark.runtime.batch_metrics import WITHOUT_A_DAY, BatchResult
from rivermark.runtime.query.base import QueryHost
from rivermark.runtime.query.finality import around_days, build_days_of, read_instead
from rivermark.runtime.query.static_tables import StaticTables
from rivermark.runtime.spark.computed import computed
from rivermark.runtime.spark.input_size import fits_driver
from rivermark.settings import Settings
from rivermark.sinks.output import replace_in_others

TWO_DAYS: Final = timedelta(days=2)
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
        around = around_days(self.declared)
        if away > around + TWO_DAYS:
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
            wider: timedelta | None = around
            while wider is not None:
                built = build_days(self.spark, self.lake, self.declared, days, wider)
                rows_out, lost, wider = write_days(
                    self.lake, self.declared, built, self.origin, metadata, audited=self.bounded
                )
        return BatchResult(
            rows_in=rows_in,
            rows_out=rows_out,
            touched=frozenset(day for day in built.days if day <= max(days)),
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
    """The values that rows of `day` and `away` touch."""
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


def touched_day(stream: Stream) -> Column:
    """The day of the output that an input row belongs to."""
    if stream.touches is not None:
        return stream.touches()
    event_time = table_of(stream.reads[0]).event_time
    assert event_time is not None  # noqa: S101 - every ingest has one
    return day_column(days_of(stream.tables[0]), event_time)


def touches_days(stream: Stream, days: Collection[date], around: timedelta) -> Column:
    """True if a row of the first input belongs to one of the days or lies so near to them."""
    first, last = min(days), max(days)
    day = touched_day(stream)
    near = day.between(F.lit(first - around), F.lit(last + around))
    if around or len(set(days)) == (last - first).days + 1:
        return near
    return near & day.isin(*[F.lit(d) for d in days])


@dataclass(frozen=True)
class Refreshed:
    """Rows of days that are computed again; `reach` tells whether `around` them enough was read."""

    rows: DataFrame
    days: Collection[date]
    around: timedelta
    reach: BuildReach


def build_days(
    spark: SparkSession,
    lake: Lake,
    stream: Stream,
    touched: Collection[date],
    around: timedelta,
) -> Refreshed:
    """The stream's rows for every day that the touched days may change, from its whole input.

    Those are the days that lie so near to them: a session that goes on over midnight belongs to the
    day before.
    """
    source = table_of(stream.reads[0])
    rows = read_delta(spark, lake.path(source))
    days = _near(stream, rows, touched, around)
    wanted = touches_days(stream, days, around)
    if source.event_time is not None:
        # Delta skips files by the statistics of the plain column, not of an expression over it.
        far = around + TWO_DAYS
        bounds = (F.lit(shifted(min(days), -far)), F.lit(shifted(max(days), far)))
        wanted = F.col(source.event_time).between(*(b.cast("timestamp") for b in bounds)) & wanted
    others = [read_delta(spark, lake.path(table_of(r))) for r in stream.reads[1:]]
    static = StaticTables(lake, stream)
    static.check()
    inputs = (rows.where(wanted), *others, *static.read(spark))
    daily = days_of(stream.tables[0])
    reach = BuildReach(
        daily.bounds(min(days), max(days)),
        daily.bounds(min(touched), max(touched)),
        stream.margin,
    )
    return Refreshed(build_days_of(stream, reach, *inputs), days, around, reach)


def _near(
    stream: Stream, rows: DataFrame, touched: Collection[date], around: timedelta
) -> Collection[date]:
    """The days whose results may be made of rows of the touched days too."""
    if not around:
        return touched
    if stream.touches is None:
        spans = (days_between(shifted(d, -around), shifted(d, around)) for d in touched)
        start = days_of(stream.tables[0]).start
        return sorted({*touched, *(day for span in spans for day in span if day >= start)})
    # Its days may be years: only those that rows touch are any.
    near = touches_days(stream, touched, around)
    every = rows.where(near).select(touched_day(stream).alias("day")).distinct().toArrow()
    return sorted({*touched, *every["day"].to_pylist()})


def rows_for(output: Output, built: DataFrame, days: Collection[date]) -> DataFrame:
    """The rows of those days that an output takes, and those that have no day."""
    # Where the day is not known, the condition is not either.
    wanted = F.coalesce(condition(output.table, days), F.lit(True))
    if output.where is not None:
        wanted &= output.where()
    return cut(built, _wanted=wanted).select(*output.table.schema.fieldNames())


def write_days(
    lake: Lake,
    stream: Stream,
    built: Refreshed,
    origin: Origin,
    metadata: dict[str, object],
    *,
    audited: bool = True,
) -> tuple[int, int, timedelta | None]:
    """Replace the days in each table that the stream writes; returns the number of rows.

    And how many of those that were built have no day, so that they go to no table. Last, how much
    has to be read around the days where what was read does not suffice: then nothing was written.
    The rows are audited before the first table is touched (PublicationBlocked), but those of a live
    stream.
    """
    days, lost = built.days, 0
    name = f"{origin.generation:04d}-{metadata['refresh']:010d}"
    with ExitStack() as stack:
        parts: list[tuple[Table, BatchRows]] = []
        for output in stream.outputs:
            chosen = rows_for(output, built.rows, days)
            computing = _computed(lake, stream, output.table, chosen, name)
            part, dayless = stack.enter_context(computing)
            parts.append((output.table, part))
            lost += dayless
        wider = read_instead(stream, built.reach, built.around)
        if wider is not None:
            return 0, 0, wider
        if audited:
            audit(lake, stream, [(t, rows.readable()) for t, rows in parts], instead_of=days)
        origin.check()
        for output, (_, rows) in zip(stream.outputs, parts, strict=True):
            replace_in_others(lake, output, origin, rows, days, name)
        total = 0
        for table, rows in parts:
            plain = rows.plain(lambda: built.rows.sparkSession)
            count = replace_days(lake, table, plain, days, metadata)
            total += count
            if count:
                note_written(lake, table, origin, int(str(metadata["refresh"])))
        return total, lost, None


@contextmanager
def _computed(
    lake: Lake, stream: Stream, table: Table, chosen: DataFrame, name: str
) -> Iterator[tuple[BatchRows, int]]:
    """The rows that have a day, and how many have none; in files for a block, where they are many.

    Those are read more than once: by the audit, by each sink, and where the days are replaced.
    """
    day = days_of(table).column
    with computed(chosen, grows=stream.volume == "results") as rows:
        if isinstance(rows, pa.Table):
            kept = rows.filter(pc.is_valid(rows[day]))
            yield Collected(kept), rows.num_rows - kept.num_rows
            return
        own = f"{stream.name.replace('/', '.')}-{name}"
        part = stage(lake, table, rows.where(F.col(day).isNotNull()), own, None)
        try:
            yield part, rows.where(F.col(day).isNull()).count()
        finally:
            part.discard()
