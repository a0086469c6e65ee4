"""A reprocessing as metadata of events and runs: numbers that plot, and tables to read."""

from __future__ import annotations

import dagster as dg

from jobs import metadata
from rivermark.backfill import markdown
from rivermark.backfill.result import Reprocessing
from rivermark.lake.lake import Lake
from rivermark.lake.statistics import row_count
from rivermark.model.table import Table


def of_table(done: Reprocessing, table: Table, lake: Lake) -> metadata.Metadata:
    """What is shown at a table: how its days differ, and from which versions to which."""
    outcome = done.tables[table.name]
    found = outcome.difference
    told: metadata.Metadata = {
        metadata.MODE: dg.MetadataValue.text(done.kind),
        metadata.ROW_COUNT: dg.MetadataValue.int(row_count(lake, table)),
        "reprocessing": dg.MetadataValue.text(done.id),
        "rows_before": dg.MetadataValue.int(found.rows_before),
        "rows_after": dg.MetadataValue.int(found.rows_after),
        "rows_added": dg.MetadataValue.int(found.added),
        "rows_removed": dg.MetadataValue.int(found.removed),
        "rows_changed": dg.MetadataValue.int(found.changed),
        "conflicts": dg.MetadataValue.int(outcome.conflicts),
        "version_before": dg.MetadataValue.int(outcome.version_before),
        "read": dg.MetadataValue.text(read(done)),
        "days": dg.MetadataValue.md(markdown.days(outcome)),
        "samples": dg.MetadataValue.md(markdown.samples(outcome)),
    }
    if outcome.version_after is not None:
        told["version"] = dg.MetadataValue.int(outcome.version_after)
    if outcome.side:
        told["side_table"] = dg.MetadataValue.path(outcome.side)
    return told


def of_run(done: Reprocessing) -> metadata.Metadata:
    """What is shown at the run."""
    told: metadata.Metadata = {
        f"{done.stream} {done.kind}": dg.MetadataValue.md(markdown.summary(done)),
        f"{done.stream} id": dg.MetadataValue.text(done.id),
        f"{done.stream} read": dg.MetadataValue.text(read(done)),
    }
    if done.parameters:
        changes = ", ".join(f"{name}={value}" for name, value in done.parameters.items())
        told[f"{done.stream} parameters"] = dg.MetadataValue.text(changes)
    return told


def read(done: Reprocessing) -> str:
    """The versions that were read."""
    return ", ".join(f"{name} at {version}" for name, version in done.inputs.items())
