"""The door once more, over raw rows: with the contract as it is declared now, or another lateness.

Nothing that is published is touched: the rows go to tables of their own. Which files are read is
told by the arrivals of the rows of those days; the clock at the first of them is that of the
admitted table as it is, so rules that were different all along move only what comes after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.backfill.late.hours import bounds
from rivermark.ingest.batch.arrow_batch import ArrowBatch
from rivermark.ingest.decision import evaluate_splits
from rivermark.ingest.late_rows import may_exceed
from rivermark.ingest.parse.parser import Head, Parser
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.ingest.watermark import Progress
from rivermark.lake.commit_metadata import noted
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.sql import ask, quoted
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import Ingest
from rivermark.model.table import Table

ROWS_AT_ONCE: Final = 200_000
"""About so many raw rows are decided at once, in the driver."""


@dataclass(frozen=True)
class SideTables:
    """Where the replayed rows of an ingest lie: apart from all that is published."""

    admitted: Table
    late: Table
    quarantine: Table

    @classmethod
    def of(cls, ingest: Ingest) -> SideTables:
        """The side tables of an ingest, below `readmitted/`; each replay begins them anew."""
        tables = (ingest.admitted, ingest.late, ingest.quarantine)
        return cls(*(replace(t, name=f"readmitted/{t.name}", days=None) for t in tables))


@dataclass(frozen=True)
class Replayed:
    """What was read: arrivals from `first_batch` to `last_batch`, files and rows."""

    first_batch: int
    last_batch: int
    files: int
    rows: int


@dataclass(frozen=True)
class _File:
    """A file that was read: its name, arrival, and rows."""

    name: str
    batch: int
    rows: int


def replay(
    spark: SparkSession, lake: Lake, ingest: Ingest, first: date, last: date, *, run_id: str
) -> Replayed:
    """Decide about the raw rows of the files in which rows of these days came, into side tables.

    Raises RivermarkError where no row of the days has come, or where raw rows are missing.
    """
    arrivals = arrivals_of_days(lake, ingest, *bounds(first, last, ingest.days))
    if arrivals is None:
        raise RivermarkError(f"'{ingest.name}' has no row of {first} to {last}: nothing to replay")
    files = _files(lake, ingest, *arrivals)
    side = SideTables.of(ingest)
    for table in (side.admitted, side.late, side.quarantine):
        create_table(lake, table)
        DeltaTable(lake.path(table)).delete()
    raw = spark.read.format("delta").load(lake.path(ingest.raw))
    lines = raw.where(F.col("_ingest_batch").between(*arrivals))
    heads = {Head(*row) for row in lines.select("_format", "_columns").distinct().collect()}
    parser = Parser(ingest.contract, ingest.source.delimiter)
    clock, rows = _clock_before(lake, ingest, arrivals[0]), 0
    for part in _parts(files):
        mine = lines.where(F.col("_ingest_batch").between(part[0].batch, part[-1].batch))
        clock, count = _decide(
            lake, ingest, side, _parsed(parser, mine, heads), part, clock, run_id
        )
        rows += count
    expected = sum(file.rows for file in files)
    if rows != expected:
        raise RivermarkError(
            f"table '{ingest.raw.name}' holds {rows:,} rows of these files and {expected:,} came: "
            "what is missing cannot be decided again"
        )
    return Replayed(*arrivals, files=len(files), rows=rows)


def arrivals_of_days(
    lake: Lake, ingest: Ingest, start: datetime, end: datetime
) -> tuple[int, int] | None:
    """The first and the last arrival that brought a row of [start, end); None of none."""
    found: list[int] = []
    for table, column in (
        (ingest.admitted, ingest.contract.event_time),
        (ingest.late, ingest.contract.event_time),
        (ingest.quarantine, "event_time"),
    ):
        if not lake.exists(table):
            continue
        row = ask(
            f"SELECT min(_ingest_batch) AS first, max(_ingest_batch) AS last FROM found"  # noqa: S608
            f" WHERE {quoted(column)} >= $start AND {quoted(column)} < $end",
            {"found": DeltaTable(lake.path(table)).to_pyarrow_dataset()},
            {"start": start, "end": end},
        )[0]
        found += [n for n in row.values() if n is not None]
    return (min(found), max(found)) if found else None


def _files(lake: Lake, ingest: Ingest, first: int, last: int) -> list[_File]:
    """The files that were read, in the order in which the door judged them."""
    rows = ask(
        "SELECT file, ingest_batch, max(rows) AS rows FROM outcomes WHERE stream = $stream"
        " AND status = 'read' AND ingest_batch BETWEEN $first AND $last"
        " GROUP BY file, ingest_batch, modified_at, path ORDER BY ingest_batch, modified_at, path",
        {"outcomes": DeltaTable(lake.path(INGEST_FILES)).to_pyarrow_dataset()},
        {"stream": ingest.name, "first": first, "last": last},
    )
    return [_File(row["file"], row["ingest_batch"], row["rows"]) for row in rows]


def _parts(files: Sequence[_File]) -> Iterator[list[_File]]:
    """The files in parts of a bounded number of rows, whole arrivals each."""
    part: list[_File] = []
    rows = 0
    for file in files:
        if part and rows + file.rows > ROWS_AT_ONCE and file.batch != part[-1].batch:
            yield part
            part, rows = [], 0
        part.append(file)
        rows += file.rows
    if part:
        yield part


def _clock_before(lake: Lake, ingest: Ingest, batch: int) -> Progress:
    """How far event time had come when an arrival came, by the rows admitted before it."""
    time = quoted(ingest.contract.event_time)
    newest = ask(
        f"SELECT max({time}) AS newest FROM found WHERE _ingest_batch < ?",  # noqa: S608 - declared
        {"found": DeltaTable(lake.path(ingest.admitted)).to_pyarrow_dataset()},
        [batch],
    )[0]["newest"]
    return Progress(newest.astimezone(UTC) if newest else None)


def _parsed(parser: Parser, lines: DataFrame, heads: set[Head]) -> pa.Table:
    known = lines.withColumns({"_record": F.lit(True), "_part": F.lit(0), "_mid": F.col("_row")})
    return parser.parse(known, heads).toArrow()


def _decide(
    lake: Lake,
    ingest: Ingest,
    side: SideTables,
    parsed: pa.Table,
    files: Sequence[_File],
    clock: Progress,
    run_id: str,
) -> tuple[Progress, int]:
    """Judge a part of the files as the door does, and append its rows to the side tables."""
    batch = ArrowBatch(parsed, ingest)
    statistics = batch.statistics()
    names = [file.name for file in files]
    bounds, after = evaluate_splits(names, statistics, batch, clock, ingest)
    batch.mark({n: b for n, b in bounds.items() if may_exceed(statistics.get(n), b)})
    told: dict[str, Any] = {"readmission": ingest.name, "run": run_id}
    for table, rows in (
        (side.admitted, batch.admitted()),
        (side.late, batch.late()),
        (side.quarantine, batch.quarantined()),
    ):
        if rows.num_rows:
            write_deltalake(lake.path(table), rows, mode="append", commit_properties=noted(told))
    return after, parsed.num_rows


def with_lateness(ingest: Ingest, lateness: timedelta | None) -> Ingest:
    """The ingest with another lateness, or as it is declared where none is given."""
    return ingest if lateness is None else replace(ingest, lateness=lateness)
