"""A reprocessing as metadata of events and runs: numbers that plot, and tables to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from jobs import metadata
from rivermark.backfill.difference import KINDS
from rivermark.backfill.result import Reprocessing, TableOutcome, plain
from rivermark.lake.lake import Lake
from rivermark.lake.statistics import row_count
from rivermark.model.table import Table


def of_table(done: Reprocessing, table: Table, lake: Lake) -> metadata.Metadata:
    """The metadata of a table: how its days differ, and from which versions to which."""
    outcome = done.tables[table.name]
    difference = outcome.difference
    shown: metadata.Metadata = {
        metadata.MODE: dg.MetadataValue.text(done.kind),
        metadata.ROW_COUNT: dg.MetadataValue.int(row_count(lake, table)),
        "reprocessing": dg.MetadataValue.text(done.id),
        "rows_before": dg.MetadataValue.int(difference.rows_before),
        "rows_after": dg.MetadataValue.int(difference.rows_after),
        "rows_added": dg.MetadataValue.int(difference.added),
        "rows_removed": dg.MetadataValue.int(difference.removed),
        "rows_changed": dg.MetadataValue.int(difference.changed),
        "conflicts": dg.MetadataValue.int(outcome.conflicts),
        "version_before": dg.MetadataValue.int(outcome.version_before),
        "read": dg.MetadataValue.text(versions_read(done)),
        "days": dg.MetadataValue.md(days(outcome)),
        "samples": dg.MetadataValue.md(samples(outcome)),
    }
    if outcome.version_after is not None:
        shown["version"] = dg.MetadataValue.int(outcome.version_after)
    if outcome.sinks:
        effects = "; ".join(f"{target}: {effect}" for target, effect in outcome.sinks.items())
        shown["sinks"] = dg.MetadataValue.text(effects)
    if outcome.side:
        shown["side_table"] = dg.MetadataValue.path(outcome.side)
    return shown


def of_run(done: Reprocessing) -> metadata.Metadata:
    """The metadata of the run."""
    shown: metadata.Metadata = {
        f"{done.stream} {done.kind}": dg.MetadataValue.md(summary(done)),
        f"{done.stream} id": dg.MetadataValue.text(done.id),
        f"{done.stream} read": dg.MetadataValue.text(versions_read(done)),
    }
    if done.parameters:
        changes = ", ".join(f"{name}={value}" for name, value in done.parameters.items())
        shown[f"{done.stream} parameters"] = dg.MetadataValue.text(changes)
    return shown


def versions_read(done: Reprocessing) -> str:
    """The versions of the inputs, as text."""
    return ", ".join(f"{name} at {version}" for name, version in done.inputs.items())


def summary(done: Reprocessing) -> str:
    """One table with a line for each published table."""
    rows = [
        [
            outcome.table,
            *(f"{getattr(outcome.difference, kind):,}" for kind in KINDS),
            ", ".join(f"{name} {n:,}" for name, n in outcome.difference.columns.items()),
            str(outcome.version_before),
            "" if outcome.version_after is None else str(outcome.version_after),
        ]
        for outcome in done.tables.values()
    ]
    return metadata.markdown(["table", *KINDS, "columns", "version before", "version after"], rows)


def days(outcome: TableOutcome) -> str:
    """How each day's rows differ, with the sums that changed."""
    sums: dict[Any, list[str]] = {}
    for each in outcome.difference.sums:
        if each.before != each.after:
            text = f"{each.column}: {each.before} → {each.after}"
            sums.setdefault(each.day, []).append(text)
    rows = [
        [day.isoformat(), *(f"{n[kind]:,}" for kind in KINDS), "; ".join(sums.get(day, []))]
        for day, n in outcome.difference.days.items()
    ]
    return metadata.markdown(["day", *KINDS, "sums that moved"], rows)


def samples(outcome: TableOutcome) -> str:
    """A few rows of each kind that differ; personal values are hidden in them already."""
    rows = [
        [sample.kind, _pairs(sample.key), _pairs(sample.values)]
        for sample in outcome.difference.samples
    ]
    head = ["kind", "key", "values (changed: before → after)"]
    return metadata.markdown(head, rows) if rows else "None."


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_shown(value)}" for name, value in values.items())


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " → ".join(str(plain(each)) for each in value)
    return str(plain(value))
