"""What the catalog shows of each table: lineage, columns, days, owners, where it is declared."""

from __future__ import annotations

from typing import Final

import dagster as dg
from pyspark.sql.types import StructType

from jobs.dashboard import dashboard_link
from jobs.names import by_days, progress_key, table_key
from platform_defs.days import mapping, partitions_of
from platform_defs.source_links import code_references
from rivermark.model.stream import AnyStream, Ingest, Output, Stream, table_of
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.sinks.output import sinks_of

KINDS: Final = {"spark", "delta"}


def table_spec(topology: Topology, stream: AnyStream, table: Table) -> dg.AssetSpec:
    """The asset of a table that a stream writes."""
    return dg.AssetSpec(
        key=table_key(table),
        deps=lineage(topology, stream, table),
        description=table.description,
        group_name=stream.group,
        kinds=KINDS,
        owners=list(stream.owners),
        partitions_def=partitions_of(stream, table),
        freshness_policy=_freshness(stream, table),
        # A run hosts some streams, and a batch without late rows writes no late table.
        skippable=True,
        metadata={
            "dagster/column_schema": column_schema(stream, table),
            "dagster/table_name": table.name,
            "dagster/storage_kind": "delta",
            "stream": stream.name,
            "dashboard": dashboard_link(stream),
            "days": f"days of {table.days.zone} by {table.days.column}" if table.days else "none",
            **sinks(stream, table),
            **code_references(stream),
        },
    )


def sinks(stream: AnyStream, table: Table) -> dict[str, str]:
    """Where the rows of an output go, and how often each of them gets there."""
    output = stream.output(table) if isinstance(stream, Stream) else Output(table)
    own, *others = sinks_of(output)
    described = {"delivery": str(own.delivery)}
    if others:
        described["sinks"] = "; ".join(sink.described() for sink in others)
    return described


def progress_spec(topology: Topology, group: str) -> dg.AssetSpec:
    """The asset that stands for the group as a whole: to materialize it is to run its streams."""
    names = ", ".join(stream.name for stream in topology.groups()[group])
    return dg.AssetSpec(
        key=progress_key(group),
        description=(
            f"The group's part of `{STREAM_PROGRESS.name}`, one row a batch of each stream.\n\n"
            f"Materialize it to bring the whole group up to date: {names}."
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
        group_name=ingest.group,
        kinds={ingest.source.kind},
    )


def landing_key(ingest: Ingest) -> dg.AssetKey:
    """The asset of an ingest's source, such as a landing folder."""
    return dg.AssetKey(ingest.source.asset)


def lineage(topology: Topology, stream: AnyStream, table: Table) -> list[dg.AssetDep]:
    """What the table is made from."""
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


def column_schema(stream: AnyStream, table: Table) -> dg.TableSchema:
    """The columns with their Spark types, and what the contract says of them."""
    fields = stream.contract.fields if isinstance(stream, Ingest) else ()
    return _columns(table, {field.name: field.description for field in fields})


def _columns(table: Table, descriptions: dict[str, str]) -> dg.TableSchema:
    schema: StructType = table.schema
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                name=field.name,
                type=field.dataType.simpleString(),
                description=descriptions.get(field.name) or field.metadata.get("comment"),
                constraints=dg.TableColumnConstraints(nullable=field.nullable),
                tags={"personal": ""} if field.name in table.personal else {},
            )
            for field in schema.fields
        ]
    )


def _freshness(stream: AnyStream, table: Table) -> dg.FreshnessPolicy | None:
    if stream.fresh_within is None or table.name != stream.tables[0].name:
        return None
    return dg.FreshnessPolicy.time_window(fail_window=stream.fresh_within)
