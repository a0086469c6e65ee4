"""Checks of a stream, by what it declares."""

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
from rivermark.lake.snapshot import row_count
from rivermark.model.check import CheckResult
from rivermark.model.errors import TableDamaged
from rivermark.model.source_abilities import LandingSource
from rivermark.model.stream import AnyStream, Ingest, table_of
from rivermark.model.table import Table
from rivermark.monitor.changed_files import UNCHANGED, files_unchanged
from rivermark.monitor.checks.check import StreamCheck
from rivermark.monitor.checks.liveness import ALIVE, alive
from rivermark.monitor.checks.row_checks import (
    DELIVERED,
    FEW_LATE,
    FEW_QUARANTINED,
    HAVE_DAYS,
    NONE_DROPPED,
    STATIC_UNIQUE,
    TARGETS_HOLD,
    UNIQUE,
    late_share,
    quarantine_share,
    rows_delivered,
    rows_dropped,
    rows_have_days,
    rows_unique,
    static_rows_unique,
    targets_hold,
    tells_holding,
)
from rivermark.monitor.checks.row_conservation import ACCOUNTED_FOR, rows_accounted_for
from rivermark.monitor.lag import KEEPS_UP, keeps_up
from rivermark.settings import Settings


def checks_of_stream(stream: AnyStream) -> tuple[StreamCheck, ...]:
    """Every check that passes while all is well with the stream."""
    is_alive = StreamCheck(
        name=ALIVE,
        table=stream.tables[0],
        stream=stream.name,
        description="While its group is meant to run, the stream beats and its batches move on.",
        severity="critical",
        evaluate=lambda settings, now: alive(settings, stream, now),
    )
    if isinstance(stream, Ingest):
        return (is_alive, *_checks_of_ingest(stream))
    unique = [_unique(stream, table) for table in stream.tables if table.keys]
    if any(table_of(read).keys for read in stream.static):
        joined_once = StreamCheck(
            name=STATIC_UNIQUE,
            table=stream.tables[0],
            stream=stream.name,
            description="No table that is joined whole has two rows of a key.",
            severity="critical",
            evaluate=lambda settings, _: static_rows_unique(settings, stream),
        )
        unique.append(joined_once)
    sinks = [(sink, output.table) for output in stream.outputs for sink in output.sinks]
    if any(sink.tables(table) or sink.needed(table) for sink, table in sinks):
        delivered = StreamCheck(
            name=DELIVERED,
            table=stream.tables[0],
            stream=stream.name,
            description="No row waits because a target outside the lake did not take it.",
            severity="warning",
            evaluate=lambda settings, _: rows_delivered(settings, stream),
        )
        unique.append(delivered)
    for output in filter(tells_holding, stream.outputs):
        hold = StreamCheck(
            name=TARGETS_HOLD,
            table=output.table,
            stream=stream.name,
            description="Targets outside the lake hold the rows of the table.",
            severity="critical",
            evaluate=lambda settings, _, output=output: targets_hold(settings, stream, output),  # type: ignore[misc]
        )
        unique.append(hold)
    if stream.kind != "append":
        have_days = StreamCheck(
            name=HAVE_DAYS,
            table=stream.tables[0],
            stream=stream.name,
            description="Every row that was read has a day, by which the table is written.",
            severity="critical",
            evaluate=lambda settings, _: rows_have_days(settings, stream.name),
        )
        return (is_alive, *unique, have_days)
    none_dropped = StreamCheck(
        name=NONE_DROPPED,
        table=stream.tables[0],
        stream=stream.name,
        description="No operator dropped a row behind its watermark: admission decides lateness.",
        severity="critical",
        evaluate=lambda settings, _: rows_dropped(settings, stream.name),
    )
    return (is_alive, *unique, none_dropped)


def retention_checks(stream: AnyStream) -> tuple[StreamCheck, ...]:
    """The version retention of each of its tables: evaluated once a day, because it reads them."""
    return tuple(
        StreamCheck(
            name=VERSIONS,
            table=table,
            stream=stream.name,
            description="The oldest version that retention covers is read, every file of it.",
            severity="critical",
            evaluate=lambda settings, now, table=table: versions_readable(settings, table, now),  # type: ignore[misc]
        )
        for table in stream.tables
    )


def _unique(stream: AnyStream, table: Table) -> StreamCheck:
    return StreamCheck(
        name=UNIQUE,
        table=table,
        stream=stream.name,
        description=f"No two rows share ({', '.join(table.keys)}).",
        severity="critical",
        evaluate=lambda settings, _: rows_unique(settings, table),
    )


def _checks_of_ingest(ingest: Ingest) -> tuple[StreamCheck, ...]:
    accounted_for = StreamCheck(
        name=ACCOUNTED_FOR,
        table=ingest.admitted,
        stream=ingest.name,
        description="File by file: rows in = admitted + late + quarantined.",
        severity="critical",
        evaluate=lambda settings, _: rows_accounted_for(settings, ingest),
    )
    few_quarantined = StreamCheck(
        name=FEW_QUARANTINED,
        table=ingest.quarantine,
        stream=ingest.name,
        description=f"At most {ingest.quarantine_below:.1%} of the rows are quarantined.",
        severity="warning",
        evaluate=lambda settings, _: quarantine_share(settings, ingest),
    )
    checks = [accounted_for, few_quarantined]
    if isinstance(ingest.source, LandingSource):
        unchanged = StreamCheck(
            name=UNCHANGED,
            table=ingest.raw,
            stream=ingest.name,
            description="No file has another content than when it was read.",
            severity="warning",
            evaluate=lambda settings, _: files_unchanged(settings, ingest),
        )
        checks.append(unchanged)
    if ingest.source.together:
        no_lag = StreamCheck(
            name=KEEPS_UP,
            table=ingest.raw,
            stream=ingest.name,
            description="Of no partition the oldest unread record waits for long.",
            severity="warning",
            evaluate=lambda settings, now: keeps_up(settings, ingest, now),
        )
        checks.append(no_lag)
    if ingest.kind == "lookup":
        return (*checks, _unique(ingest, ingest.admitted))
    if ingest.lateness is None:
        return tuple(checks)
    few_late = StreamCheck(
        name=FEW_LATE,
        table=ingest.late,
        stream=ingest.name,
        description=f"At most {ingest.late_below:.1%} of the valid rows come too late.",
        severity="warning",
        evaluate=lambda settings, _: late_share(settings, ingest),
    )
    return (*checks, few_late)


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
