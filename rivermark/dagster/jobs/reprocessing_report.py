"""A reprocessing as metadata of events and runs: numbers that plot, and tables to read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import dagster as dg

from rivermark.backfill.difference import KINDS, Difference
from rivermark.backfill.result import Reprocessing, plain
from rivermark.dagster.jobs import metadata
from rivermark.lake.lake import Lake
from rivermark.model.table import Table, days_between


def of_table(done: Reprocessing, table: Table, lake: Lake) -> metadata.Metadata:
    """The metadata of a table: how its days differ, and from which versions to which."""
    outcome = done.tables[table.name]
    return {
        **_of_all_days(done, table, lake),
        **_numbers(outcome.difference),
        "conflicts": dg.MetadataValue.int(outcome.conflicts),
    }


def of_days(done: Reprocessing, table: Table, lake: Lake) -> dict[date, metadata.Metadata]:
    """The metadata of each day of the range: with the day's own numbers."""
    common, difference = _of_all_days(done, table, lake), done.tables[table.name].difference
    of_days = {day: difference.of_day(day) for day in days_between(done.first, done.last)}
    return {
        day: common | _numbers(own) | metadata.of_day_rows(own.rows_after)
        for day, own in of_days.items()
    }


def _numbers(difference: Difference) -> metadata.Metadata:
    return {
        "rows_before": dg.MetadataValue.int(difference.rows_before),
        "rows_after": dg.MetadataValue.int(difference.rows_after),
        "rows_added": dg.MetadataValue.int(difference.added),
        "rows_removed": dg.MetadataValue.int(difference.removed),
        "rows_changed": dg.MetadataValue.int(difference.changed),
        "days": dg.MetadataValue.md(days(difference)),
        "samples": dg.MetadataValue.md(samples(difference)),
    }


def _of_all_days(done: Reprocessing, table: Table, lake: Lake) -> metadata.Metadata:
    """Facts that are no number of a day: mode, and versions before and after."""
    outcome = done.tables[table.name]
    shown = {
        **metadata.of_mode(done.kind),
        **metadata.of_rows(lake, table),
        "reprocessing": dg.MetadataValue.text(done.id),
        "version_before": dg.MetadataValue.int(outcome.version_before),
        "read": dg.MetadataValue.text(versions_read(done)),
    }
    if outcome.version_after is not None:
        shown |= metadata.of_version(outcome.version_after)
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


def days(difference: Difference) -> str:
    """Differences of each day's rows, with the sums that changed."""
    sums: dict[Any, list[str]] = {}
    for each in difference.sums:
        if each.before != each.after:
            text = f"{each.column}: {each.before} → {each.after}"
            sums.setdefault(each.day, []).append(text)
    rows = [
        [day.isoformat(), *(f"{n[kind]:,}" for kind in KINDS), "; ".join(sums.get(day, []))]
        for day, n in difference.days.items()
    ]
    return metadata.markdown(["day", *KINDS, "sums that moved"], rows)


def samples(difference: Difference) -> str:
    """A few rows of each kind that differ; personal values are hidden in them already."""
    rows = [
        [sample.kind, _pairs(sample.key), _pairs(sample.values)] for sample in difference.samples
    ]
    head = ["kind", "key", "values (changed: before → after)"]
    return metadata.markdown(head, rows) if rows else "None."


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_shown(value)}" for name, value in values.items())


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " → ".join(str(plain(each)) for each in value)
    return str(plain(value))
