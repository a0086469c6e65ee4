"""Catalog entries of tables: lineage, columns, days, owners, place of declaration.

Of an ingest the declaration says what columns come from, of a native stream Spark's plan, which the
last run recorded. A process function may compute a column of all that it reads: only that is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Final

import dagster as dg
from pyspark.sql.types import StructType

from rivermark.dagster.days import Starts, mapping, partitions_of
from rivermark.dagster.jobs.dashboard import with_link
from rivermark.dagster.jobs.names import TABLES, asset_key, by_days, progress_key, table_key
from rivermark.dagster.source_links import code_references
from rivermark.model.stream import AnyStream, Ingest, Output, Stream, table_of
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.monitor.dashboard.formatting import anchor
from rivermark.process.spark import ProcessBuild
from rivermark.process.spark.wire import fields_of
from rivermark.runtime.supervision.lineage_record import Lineage, known_lineage
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.sinks.output import sinks_of

KINDS: Final = {"spark", "delta"}
LIVE_FRESH: Final = timedelta(days=2)
"""A live stream closes a day each day, and reports it also where it is empty."""
DUMP_FRESH: Final = timedelta(days=35)
"""Dumps and lookups come by the month."""

COMMON_COLUMNS: Final = {
    "event_time": "When it happened (UTC); of a quarantined row where that could be read.",
    "flags": "Rules of the contract that the row breaks and that do not quarantine it.",
    "_file": "The file, or other split of the source, that the row came in.",
    "_row": "Its place there: of a file the line, from 1.",
    "_ingest_batch": "The planned batch that read it.",
    "_ingested_at": "When it was read (UTC).",
    "_landed_at": "When its file landed (UTC).",
    "_arrival": "The number of its planned batch, as in `_ingest_batch`.",
    "_format": "The format of its file.",
    "_columns": "The columns of its file.",
    "_watermark": "The watermark that the row missed (UTC).",
    "_late_by_ms": "How far it lay behind that watermark (ms).",
    "_watermark_after": "The watermark that its file, or round of messages, left (UTC).",
    "payload": "The row as it came, as text.",
    "reasons": "Why the row was quarantined.",
    "details": "Which fields the reasons are about.",
    "window_start": "Start of the window, within it (UTC).",
    "window_end": "End of the window, no longer within it (UTC).",
    "lookup_status": "What became of the lookup: found, absent, failed or timed out.",
    "lookup_error": "Why the lookup failed or timed out.",
}
"""What columns are that the platform adds, and those that have one name wherever they are."""


def table_spec(
    topology: Topology,
    stream: AnyStream,
    table: Table,
    state: Path,
    starts: Starts = MappingProxyType({}),
) -> dg.AssetSpec:
    """The asset of a table that a stream writes; `state` holds what runs recorded of it."""
    known = known_lineage(stream, table, state)
    return dg.AssetSpec(
        key=table_key(table),
        deps=lineage(topology, stream, table),
        description=with_link(table.description, anchor(stream.name)),
        group_name=asset_group(stream, table),
        kinds=KINDS,
        owners=list(stream.owners),
        partitions_def=partitions_of(stream, table, starts),
        freshness_policy=freshness(stream, table),
        # A run hosts some streams, and a batch without late rows writes no late table.
        skippable=True,
        metadata={
            "dagster/column_schema": column_schema(topology, stream, table, known),
            "dagster/table_name": table.name,
            "dagster/storage_kind": "delta",
            "stream": stream.name,
            "days": f"days of {table.days.zone} by {table.days.column}" if table.days else "none",
            **lineage_metadata(stream, table, known),
            **sinks(stream, table),
            **restart(stream),
            **code_references(stream),
        },
    ).with_io_manager_key(TABLES)


def asset_group(stream: AnyStream, table: Table) -> str:
    """The group in the lineage: what comes before the admitted rows of an ingest is beside them."""
    if isinstance(stream, Ingest) and table.name != stream.admitted.name:
        return ingest_group(stream)
    return stream.group


def ingest_group(ingest: Ingest) -> str:
    """The group of an ingest's source, raw, late and quarantined rows."""
    return f"{ingest.group}_ingest"


def sinks(stream: AnyStream, table: Table) -> dict[str, str]:
    """Destinations of an output's rows, with their delivery guarantee."""
    output = stream.output(table) if isinstance(stream, Stream) else Output(table)
    own, *others = sinks_of(output)
    described = {"delivery": str(own.delivery)}
    if others:
        described["sinks"] = "; ".join(sink.described() for sink in others)
    return described


def restart(stream: AnyStream) -> dict[str, str]:
    """The declared restart strategy; nothing where the usual one counts."""
    strategy = stream.restart
    if strategy is None:
        return {}
    # What it was declared with; where that was stands beside it.
    values = {name: value for name, value in vars(strategy).items() if name[0] != "_"}
    words = ", ".join(f"{name} {value}" for name, value in values.items())
    return {"restart": f"{type(strategy).__name__}: {words}".removesuffix(": ")}


def progress_spec(topology: Topology, group: str) -> dg.AssetSpec:
    """The asset that stands for the group as a whole: to materialize it is to run its streams."""
    names = ", ".join(stream.name for stream in topology.groups()[group])
    return dg.AssetSpec(
        key=progress_key(group),
        description=with_link(
            f"The group's part of `{STREAM_PROGRESS.name}`, one row a batch of each stream.\n\n"
            f"Materialize it to bring the whole group up to date: {names}.",
            anchor(group, "group"),
        ),
        group_name=group,
        kinds=KINDS,
        skippable=True,
        metadata={
            "dagster/column_schema": _columns(STREAM_PROGRESS, {}),
            "dagster/table_name": STREAM_PROGRESS.name,
            "dagster/storage_kind": "delta",
        },
    )


def landing_spec(ingest: Ingest) -> dg.AssetSpec:
    """The source that others fill: the beginning of the lineage."""
    return dg.AssetSpec(
        key=landing_key(ingest),
        description=ingest.source.description,
        group_name=ingest_group(ingest),
        kinds={ingest.source.kind},
    )


def landing_key(ingest: Ingest) -> dg.AssetKey:
    """The asset of an ingest's source, such as a landing folder."""
    return asset_key(ingest.source.asset)


def lineage(topology: Topology, stream: AnyStream, table: Table) -> list[dg.AssetDep]:
    """Assets that the table is made from."""
    if isinstance(stream, Ingest):
        raw = stream.raw.name
        if stream.kind == "lookup" and table.name == stream.admitted.name:
            return [dg.AssetDep(table_key(stream.versions.name))]
        source = landing_key(stream) if table.name == raw else table_key(raw)
        return [dg.AssetDep(source)]
    return [_dep(topology, stream, table, table_of(r)) for r in (*stream.reads, *stream.static)]


def _dep(topology: Topology, stream: AnyStream, table: Table, read: Table) -> dg.AssetDep:
    writer = topology.writer(read)
    both_by_days = writer is not None and by_days(writer, read) and by_days(stream, table)
    if both_by_days and read.days and table.days:
        return dg.AssetDep(table_key(read), partition_mapping=mapping(read.days, table.days))
    return dg.AssetDep(table_key(read))


def column_schema(
    topology: Topology, stream: AnyStream, table: Table, known: Lineage
) -> dg.TableSchema:
    """The columns with their Spark types, what the declarations say of them, and their lineage.

    The page of Dagster that is free shows no lineage of columns but this.
    """
    described = descriptions(topology, stream)
    described |= {c.name: text for c in table.schema if (text := c.metadata.get("comment"))}
    for column in known:
        described[column] = f"{described.get(column, '')} {origin(stream, column, known)}".lstrip()
    return _columns(table, described)


def descriptions(topology: Topology, stream: AnyStream) -> dict[str, str]:
    """Descriptions of columns: of the contract, or of the inputs' columns of the same name."""
    described = {**COMMON_COLUMNS}
    if isinstance(stream, Ingest):
        return described | {f.name: f.description for f in stream.contract.fields if f.description}
    for upstream in reversed(topology.upstreams(stream)):
        described |= descriptions(topology, upstream)
        described |= {
            f.name: comment
            for table in upstream.tables
            for f in table.schema.fields
            if (comment := f.metadata.get("comment"))
        }
    return described


def _columns(table: Table, descriptions: dict[str, str]) -> dg.TableSchema:
    schema: StructType = table.schema
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                name=field.name,
                type=field.dataType.simpleString(),
                description=descriptions.get(field.name),
                constraints=dg.TableColumnConstraints(nullable=field.nullable),
                tags={"personal": ""} if field.name in table.personal else {},
            )
            for field in schema.fields
        ]
    )


def freshness(stream: AnyStream, table: Table) -> dg.FreshnessPolicy | None:
    """The age at which a published table is stale: as declared, else by how its rows come.

    Tables without days beside a stream's first, such as one of alerts, may get no row for long.
    """
    if table.name != stream.tables[0].name and not by_days(stream, table):
        return None
    live = stream.kind == "append" if isinstance(stream, Stream) else stream.lateness is not None
    return dg.FreshnessPolicy.time_window(
        fail_window=stream.fresh_within or (LIVE_FRESH if live else DUMP_FRESH)
    )


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
