"""Replaces days of an output in its table, and in each of its other sinks as that one does it."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from datetime import date
from typing import Any

from pyspark.sql import SparkSession

from rivermark.backfill.result import Reprocessing, TableOutcome
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.replace import replace_days
from rivermark.model.errors import RivermarkError
from rivermark.model.rows import as_rows
from rivermark.model.sink import Rows
from rivermark.model.stream import Output, Stream
from rivermark.model.table import Table
from rivermark.runtime.checkpoint.generation import Generation, read_generation
from rivermark.sinks.output import context_of, replace_in_others, sinks_of


def check_replaceable(stream: Stream) -> None:
    """Raise RivermarkError where a sink of the stream refuses to have days replaced."""
    for output in stream.outputs:
        for sink in sinks_of(output):
            if sink.on_replace == "refuses":
                raise RivermarkError(
                    f"'{output.table.name}' is also written to {sink.target}, where days "
                    "cannot be replaced: use --dry-run, and correct the target yourself"
                )


def effects_on_sinks(output: Output) -> dict[str, str]:
    """The effect of replacing days on each sink that the output declares, by target."""
    return {sink.target: sink.on_replace for sink in sinks_of(output)} if output.sinks else {}


def publish_days(
    lake: Lake,
    stream: Stream,
    output: Output,
    rows: Rows,
    days: Collection[date],
    done: Reprocessing,
) -> None:
    """Replace the days, and record the version that this made of the table."""
    table, outcome = output.table, done.tables[output.table.name]
    metadata = commit_metadata(done, outcome)
    generation = read_generation(lake, stream) or Generation(0, done.at, 0)
    origin = generation.origin(stream, done.run_id)
    # The table comes last: where this is killed in between, its days still differ.
    replace_in_others(lake, output, origin, rows, days, done.id)
    own = sinks_of(output)[0]
    if own.on_replace == "merges":
        context = context_of(lake, output, origin, outcome.count_conflict)
        with closing(own.open(context)) as writer:
            writer.replace(rows, days, done.id, metadata)
    else:
        plain = as_rows(rows).plain(SparkSession.builder.getOrCreate)
        replace_days(lake, table, plain, days, metadata, on_conflict=outcome.count_conflict)
    outcome.version_after = version_of(lake, table, done.id)


def commit_metadata(done: Reprocessing, outcome: TableOutcome) -> dict[str, Any]:
    """The metadata of a replacing commit: all that an undo needs, should the register lack it."""
    metadata: dict[str, Any] = {
        "stream": done.stream,
        "recompute": [done.first.isoformat(), done.last.isoformat()],
        "run": done.run_id,
        "inputs": dict(done.inputs),
        "reprocessing": done.id,
        "kind": done.kind,
        "before": outcome.version_before,
        "code": done.code,
    }
    return metadata | ({"because": done.because} if done.because else {})


def version_of(lake: Lake, table: Table, name: str) -> int | None:
    """The version that a reprocessing made of a table, by the table's own log."""
    log = CommitLog(lake.path(table)).backwards()
    return next((c.version for c in log if c.metadata.get("reprocessing") == name), None)
