"""Admission repeated over raw rows, with the contract as it is declared now.

Nothing that is published is touched: the rows go to tables of their own. Files are read of all
batches that brought a row of the days; the watermark at the first of them is that of the admitted
table as it is, or the one that was recorded of producers, so rules that were different all along
change only what comes after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, Final

import pyarrow as pa
from deltalake import write_deltalake

from rivermark.backfill.context import BackfillContext
from rivermark.backfill.late.hours import bounds
from rivermark.ingest.batch.arrow_batch import ArrowBatch
from rivermark.ingest.batch.base import Kind, RowShape
from rivermark.ingest.batch.chunks import raw_tasks
from rivermark.ingest.decision import AdmissionPlan, ReadBatch, decide
from rivermark.ingest.lines import NO_LINES
from rivermark.ingest.parse.contract_parser import ContractParser
from rivermark.ingest.parse.rules import column_rules_of
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.ingest.watermark import Progress
from rivermark.ingest.watermark_recovery import progress_before
from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.sql import query, quoted
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import Ingest
from rivermark.model.table import Table

ROWS_AT_ONCE: Final = 200_000
"""About so many raw rows are decided at a time, in the driver."""


@dataclass(frozen=True)
class SideTables:
    """The tables for the replayed rows of an ingest, apart from all that is published."""

    admitted: Table
    late: Table
    quarantine: Table

    @classmethod
    def of(cls, ingest: Ingest) -> SideTables:
        """The side tables of an ingest, below `readmitted/`; each replay empties them."""
        tables = (ingest.versions, ingest.late, ingest.quarantine)
        return cls(*(replace(t, name=f"readmitted/{t.name}", days=None) for t in tables))


@dataclass(frozen=True)
class Replayed:
    """The input of a replay: batches from `first_batch` to `last_batch`, files and rows."""

    first_batch: int
    last_batch: int
    files: int
    rows: int


@dataclass(frozen=True)
class _File:
    """A file that was read: its name, batch, time (UTC), and rows."""

    name: str
    batch: int
    modified_at: datetime
    rows: int


def replay(context: BackfillContext, ingest: Ingest, first: date, last: date) -> Replayed:
    """Decide about the raw rows of the files in which rows of these days came, into side tables.

    Raises RivermarkError where no row of the days has come, where raw rows are missing, or where it
    is not known how far producers had come before.
    """
    lake = context.lake
    batches = batches_of_days(lake, ingest, *bounds(first, last, ingest.days))
    if batches is None:
        raise RivermarkError(f"'{ingest.name}' has no row of {first} to {last}: nothing to replay")
    first_batch, progress = start_of(lake, ingest, batches[0])
    batches = (first_batch, batches[1])
    files = _files(lake, ingest, *batches)
    side = SideTables.of(ingest)
    for table in (side.admitted, side.late, side.quarantine):
        create_table(lake, table)
        delta_table(lake.path(table)).delete()
    parser = ContractParser(ingest.contract, ingest.source.delimiter)
    rows = 0
    for part in _parts(files):
        parsed = _parsed(context, ingest, parser, part[0].batch, part[-1].batch)
        progress, count = _decide(context, ingest, side, parsed, part, progress)
        rows += count
    expected = sum(file.rows for file in files)
    if rows != expected:
        raise RivermarkError(
            f"table '{ingest.raw.name}' holds {rows:,} rows of these files and {expected:,} came: "
            "the missing ones cannot be replayed"
        )
    return Replayed(*batches, files=len(files), rows=rows)


def batches_of_days(
    lake: Lake, ingest: Ingest, start: datetime, end: datetime
) -> tuple[int, int] | None:
    """The first and the last batch that brought a row of [start, end); None if none did."""
    batches: list[int] = []
    for table, column in (
        (ingest.versions, ingest.contract.event_time),
        (ingest.late, ingest.contract.event_time),
        (ingest.quarantine, "event_time"),
    ):
        if not lake.exists(table):
            continue
        row = query(
            f"SELECT min(_ingest_batch) AS first, max(_ingest_batch) AS last FROM rows"  # noqa: S608
            f" WHERE {quoted(column)} >= $start AND {quoted(column)} < $end",
            {"rows": dataset_of(delta_table(lake.path(table)))},
            {"start": start, "end": end},
        )[0]
        batches += [batch for batch in row.values() if batch is not None]
    return (min(batches), max(batches)) if batches else None


def _files(lake: Lake, ingest: Ingest, first: int, last: int) -> list[_File]:
    """The files that were read, in the order in which admission decided about them."""
    rows = query(
        "SELECT file, ingest_batch, modified_at, max(rows) AS rows FROM outcomes"
        " WHERE stream = $stream AND status = 'read' AND ingest_batch BETWEEN $first AND $last"
        " GROUP BY file, ingest_batch, modified_at, path ORDER BY ingest_batch, modified_at, path",
        {"outcomes": dataset_of(delta_table(lake.path(INGEST_FILES)))},
        {"stream": ingest.name, "first": first, "last": last},
    )
    return [
        _File(r["file"], r["ingest_batch"], r["modified_at"].astimezone(UTC), r["rows"])
        for r in rows
    ]


def _parts(files: Sequence[_File]) -> Iterator[list[_File]]:
    """The files in parts of a bounded number of rows, whole batches each."""
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


def start_of(lake: Lake, ingest: Ingest, first: int) -> tuple[int, Progress]:
    """The batch with which a replay of batch `first` begins, and the progress before it.

    That is by the rows admitted before. That of producers is as admission recorded it with each of
    its commits, which may have several batches: the replay begins with the first one of those.

    Raises:
        RivermarkError: The log no longer shows how far producers had come.
    """
    if ingest.watermark is not None:
        splits = {file.name for file in _files(lake, ingest, first, first)}
        recorded, beside = progress_before(lake, ingest, splits)
        first = min([first, *(f.batch for f in _files(lake, ingest, 0, first) if f.name in beside)])
        if recorded is not None:
            return first, recorded
    time = quoted(ingest.contract.event_time)
    newest = query(
        f"SELECT max({time}) AS newest FROM rows WHERE _ingest_batch < ?",  # noqa: S608 - declared
        {"rows": dataset_of(delta_table(lake.path(ingest.versions)))},
        [first],
    )[0]["newest"]
    if newest and ingest.watermark is not None:
        raise RivermarkError(
            f"the log of table '{ingest.raw.name}' no longer shows how far the producers of "
            f"'{ingest.name}' had come before batch {first}, so it cannot be replayed"
        )
    return first, Progress(newest.astimezone(UTC) if newest else None)


def _parsed(
    context: BackfillContext, ingest: Ingest, parser: ContractParser, first: int, last: int
) -> pa.Table:
    """The raw rows of these batches, in the driver."""
    tasks = raw_tasks(context.lake.path(ingest.raw), first, last)
    lines = [part for task in tasks for part in task.lines()]
    parsed = parser.parse(pa.concat_tables([NO_LINES, *lines]))
    return column_rules_of(context.spark(), parsed, ingest.contract)


def _decide(
    context: BackfillContext,
    ingest: Ingest,
    side: SideTables,
    parsed: pa.Table,
    files: Sequence[_File],
    progress: Progress,
) -> tuple[Progress, int]:
    """Decide about a part of the files, and append its rows to the side tables."""
    rows = ArrowBatch(parsed, RowShape.of(ingest))
    read = ReadBatch(files, rows, rows.statistics(), {}, datetime.now(UTC))
    plan = AdmissionPlan.of(read, decide(read, progress, ingest))
    metadata: dict[str, Any] = {"readmission": ingest.name, "run": context.run_id}
    beside: dict[Kind, Table] = {
        "admitted": side.admitted,
        "late": side.late,
        "quarantined": side.quarantine,
    }
    for kind, table in beside.items():
        if (own := rows.rows(kind)).num_rows:
            path = context.lake.path(table)
            write_deltalake(
                delta_table(path),
                own,
                mode="append",
                commit_properties=commit_properties(metadata),
            )
    return plan.decision.progress, parsed.num_rows
