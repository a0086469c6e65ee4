"""Whether the version promise holds: the oldest promised version is read, from end to end."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from rivermark.lake.retention import oldest_promised, promise_of
from rivermark.lake.statistics import row_count
from rivermark.model.table import Table
from rivermark.monitor.checks.check import Answer
from rivermark.settings import Settings


def versions_readable(settings: Settings, table: Table, now: datetime) -> Answer:
    """Read one column of every file of the oldest promised version, and count its rows."""
    lake = settings.lake()
    if not lake.exists(table):
        return Answer(holds=True, sentence="the table is not there yet: nothing was promised")
    days = promise_of(lake, table).total_seconds() / 86400
    version = oldest_promised(lake, table, now)
    numbers: dict[str, int | float] = {"version": version, "promise_days": round(days, 3)}
    try:
        expected = row_count(lake, table, version)
        rows, files = _read(DeltaTable(lake.path(table), version=version), table)
    except (OSError, DeltaError, pa.ArrowException) as error:
        return Answer(
            holds=False,
            sentence=f"version {version}, of {days:g} days ago, cannot be read: {_first(error)}",
            numbers=numbers,
        )
    numbers |= {"rows": rows, "files": files}
    return Answer(
        holds=rows == expected,
        sentence=(
            f"version {version}, the oldest of the last {days:g} days, was read: "
            f"{rows:,} rows in {files:,} files, {expected:,} by its log"
        ),
        numbers=numbers,
    )


def _read(table: DeltaTable, declared: Table) -> tuple[int, int]:
    """Rows and files of a version, by reading a column of each."""
    dataset = table.to_pyarrow_dataset()
    wanted = declared.event_time or declared.schema.fieldNames()[0]
    rows = sum(b.num_rows for b in dataset.to_batches(columns=[wanted], batch_readahead=1))
    return rows, len(table.file_uris())


def _first(error: BaseException) -> str:
    return str(error).splitlines()[0]
