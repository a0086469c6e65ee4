"""Names of streams, groups and tables in Dagster: keys, operations, tags."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Final, TypeGuard

import dagster as dg

from rivermark.model.errors import DeclarationError
from rivermark.model.names import GROUP
from rivermark.model.stream import AnyStream, Ingest, Stream
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.runtime.query.recompute import recomputable

GROUP_TAG: Final = "rivermark/group"
MODE_TAG: Final = "rivermark/mode"
INCARNATION_TAG: Final = "rivermark/incarnation"
SETTINGS: Final = "rivermark_settings"
SPARK: Final = "rivermark_spark"
TABLES: Final = "rivermark_tables"
"""The keys of the resources, as functions name them in their parameters."""
RESTART_SENSOR: Final = "restart_streams"
NO_TIME_LIMIT: Final = {"dagster/max_runtime": "0"}
"""Zero switches a general time limit off for runs that are meant to go on without end."""


_prefixes: list[str] = []


def use_prefix(prefix: str) -> None:
    """Let the names of this process begin with a prefix, or with none where it is empty.

    Runs, sensors and the code server load the same definitions, each in its process, so that all
    of them have one. Raises DeclarationError for another prefix than before, and for a wrong one.
    """
    if prefix and not GROUP.fullmatch(prefix):
        raise DeclarationError(f"prefix {prefix!r}: write letters, digits and '_', as in 'streams'")
    if _prefixes and _prefixes[0] != prefix:
        raise DeclarationError(
            f"prefix {prefix!r}: this code location has prefix {_prefixes[0]!r} already; give "
            "another topology a code location of its own"
        )
    _prefixes[:] = [prefix]


def prefixed(name: str) -> str:
    """The name of a job, operation, pool, sensor or schedule."""
    return "_".join(filter(None, (*_prefixes, name)))


def evaluated_by(job: str, further: str = "") -> str:
    """Sentence for a check that the console leaves alone: Dagster says no more than that it is."""
    return f"Evaluated by the job `{prefixed(job)}`{f', {further}' if further else ''}."


def asset_key(parts: Sequence[str]) -> dg.AssetKey:
    """The key of an asset of that path."""
    return dg.AssetKey([*filter(None, _prefixes), *parts])


def table_key(table: Table | str) -> dg.AssetKey:
    """The asset of a table: its name, split where the name is."""
    return asset_key((table if isinstance(table, str) else table.name).split("/"))


def progress_key(group: str) -> dg.AssetKey:
    """The asset that stands for a group as a whole: its part of `ops/stream_progress`."""
    return asset_key(("ops", "stream_progress", group))


def stem(group: str) -> str:
    """The group's name as Dagster's own names allow it."""
    return prefixed(group.replace("/", "_"))


def operation(group: str) -> str:
    """The operation that hosts a group's streams; also its pool."""
    return f"{stem(group)}_streams"


def live_job_name(group: str) -> str:
    """The job whose run is the life of a group's streams."""
    return f"{stem(group)}_live"


def catch_up_job_name(group: str) -> str:
    """The job that brings a group up to date."""
    return f"{stem(group)}_catch_up"


def days_pool(group: str) -> str:
    """The pool of runs that recompute days of a group's tables: one at a time."""
    return f"{stem(group)}_days"


def days_operation(group: str, zone: str, start: date | None = None) -> str:
    """The operation that recomputes days, in a zone, of a group's tables.

    `start` is their first day, where it is not the earliest of the group's tables in that zone.
    """
    local = "" if zone == "UTC" else f"_{zone.lower().rpartition('/')[2]}"
    later = "" if start is None else f"_from_{start:%Y%m%d}"
    return days_pool(group) + "".join(c if c.isalnum() else "_" for c in local) + later


def in_order(stream: AnyStream) -> tuple[Table, ...]:
    """The stream's tables, each after those it is made from, as Dagster takes results."""
    if isinstance(stream, Ingest):
        versions = (stream.versions,) if stream.kind == "lookup" else ()
        return (stream.raw, *versions, stream.admitted, stream.late, stream.quarantine)
    return stream.tables


def by_days(stream: AnyStream, table: Table) -> TypeGuard[Stream]:
    """True if the table's asset is partitioned by days: it can be computed again by day."""
    return recomputable(stream) and table.days is not None


def hosted(topology: Topology, group: str) -> dg.AssetSelection:
    """The assets of a run without days: the group itself, and its tables without days."""
    keys = [
        table_key(table)
        for stream in topology.groups()[group]
        for table in stream.tables
        if not by_days(stream, table)
    ]
    return dg.AssetSelection.assets(progress_key(group), *keys)
