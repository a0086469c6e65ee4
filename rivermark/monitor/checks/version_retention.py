"""Version retention put to the test: the oldest version it covers is read, from end to end."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from rivermark.lake.delta import dataset_of, delta_table, read_batches
from rivermark.lake.retention import (
    kept_since,
    kept_since_in_words,
    oldest_retained,
    retention_of,
)
from rivermark.lake.statistics import row_count
from rivermark.model.check import CheckResult
from rivermark.model.errors import TableDamaged
from rivermark.model.table import Table
from rivermark.settings import Settings

VERSIONS: Final = "versions_are_readable"
"""The check that maintenance kept the versions that retention covers."""


def versions_readable(settings: Settings, table: Table, now: datetime) -> CheckResult:
    """Read one column of every file of the oldest retained version, and count its rows."""
    result = partial(CheckResult, name=VERSIONS, severity="critical")
    lake = settings.lake()
    if not lake.exists(table):
        return result(passed=True, observed="the table does not exist yet: no version to retain")
    days = retention_of(lake, table).total_seconds() / 86400
    version = oldest_retained(lake, table, now)
    numbers: dict[str, int | float] = {"version": version, "promise_days": round(days, 3)}
    try:
        expected = row_count(lake, table, version)
        rows, files = _read(delta_table(lake.path(table), version=version), table)
    except (OSError, DeltaError, pa.ArrowException, TableDamaged) as error:
        reason = str(error).splitlines()[0]
        return result(
            passed=False,
            observed=f"version {version}, of {days:g} days ago, cannot be read: {reason}",
            numbers=numbers,
        )
    since = kept_since(delta_table(lake.path(table)).metadata().configuration)
    is_short = since is not None and since > now - retention_of(lake, table)
    span = "that is kept" if is_short else f"of the last {days:g} days"
    short = f"; {kept_since_in_words(lake.path(table))}" if is_short else ""
    return result(
        passed=rows == expected,
        observed=(
            f"version {version}, the oldest {span}, was read: "
            f"{rows:,} rows in {files:,} files, {expected:,} by its log{short}"
        ),
        numbers=numbers | {"rows": rows, "files": files},
    )


def _read(version: DeltaTable, table: Table) -> tuple[int, int]:
    """Rows and files of a version, by reading a column of each."""
    column = table.event_time or table.schema.fieldNames()[0]
    batches = read_batches(dataset_of(version), columns=[column], batch_readahead=1)
    return sum(batch.num_rows for batch in batches), len(version.file_uris())
