"""The origins of a table's columns as Dagster shows them, where they are known.

Of an ingest the declaration says it, of a native stream Spark's plan, which the last run recorded.
A process function may compute a column of all that it reads: only that can be told.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from rivermark.dagster.jobs.names import table_key
from rivermark.model.contract import META
from rivermark.model.reader import LandingTime
from rivermark.model.stream import AnyStream, BindableBuild, Ingest, Stream, table_of
from rivermark.model.table import Table
from rivermark.process.spark import ProcessBuild
from rivermark.process.spark.wire import fields_of
from rivermark.runtime.supervision.lineage_record import Lineage, recorded_lineage


def known_lineage(stream: AnyStream, table: Table, state: Path) -> Lineage:
    """The columns that those of the table come from; `state` holds what runs recorded."""
    if isinstance(stream, Ingest):
        return ingest_lineage(stream, table)
    if isinstance(stream.build, BindableBuild):
        return {}
    return recorded_lineage(state, stream)


def lineage_metadata(stream: AnyStream, table: Table, known: Lineage) -> dict[str, object]:
    """The lineage of the table's columns, or what the process that computes them reads."""
    deps = {
        column: [dg.TableColumnDep(table_key(name), source) for name, source in sources]
        for column, sources in known.items()
        if column in table.schema.names
    }
    shown: dict[str, object] = {}
    if deps:
        shown["dagster/column_lineage"] = dg.TableColumnLineage(deps)
    if isinstance(stream, Stream) and isinstance(stream.build, ProcessBuild):
        name = stream.build.declared.name
        shown["computed_by"] = f"process {name}, of {'; '.join(_inputs(stream, stream.build))}"
    return shown


def origin(stream: AnyStream, column: str, known: Lineage) -> str:
    """In words what a column comes from, and how records may call it; empty where unknown."""
    if not known.get(column):
        return ""
    text = "From " + ", ".join(f"{source} of {name}" for name, source in known[column])
    fields = stream.contract.fields if isinstance(stream, Ingest) else ()
    names = next((f.names for f in fields if f.name == column), ())
    spelled = f", where it is called {' or '.join((column, *names))}" if names else ""
    return f"{text}{spelled}."


def _inputs(stream: Stream, build: ProcessBuild) -> Iterator[str]:
    """Columns that the process gets of each input: the fields of its events."""
    for name, read in zip(build.inputs, stream.reads, strict=True):
        fields = ", ".join(f.name for f in fields_of(build.declared.input(name).event.of))
        prepared = " as prepared" if name in build.prepare else ""
        yield f"{fields} of {table_of(read).name}{prepared}"


Columns = list[tuple[str, str]]
"""Names of tables, each with the name of a column of it."""


def ingest_lineage(ingest: Ingest, table: Table) -> dict[str, Columns]:
    """The columns that each column of one of the ingest's tables comes from.

    Fields are read in the payload of the raw rows. A column is left out where the declaration does
    not say it: of raw rows, whose source is no table; what rules and watermarks decide.
    """
    if table.name == ingest.raw.name:
        return {}
    if table.name != ingest.versions.name and table.name == ingest.admitted.name:
        return {name: [(ingest.versions.name, name)] for name in table.schema.names}
    raw = ingest.raw.name
    place: dict[str, Columns] = {column.name: [(raw, column.name)] for column in META}
    fields: dict[str, Columns] = {
        field.name: [(raw, "_landed_at" if isinstance(field.read, LandingTime) else "payload")]
        for field in ingest.contract.fields
    }
    if table.name == ingest.quarantine.name:
        time = fields[ingest.contract.event_time]
        return {**place, "payload": [(raw, "payload")], "event_time": time}
    return fields | place
