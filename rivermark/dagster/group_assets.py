"""A group of streams as assets: one operation that hosts the streams, one that recomputes days.

Two, because an operation has one pool: with one, a backfill would wait for a stream that never ends
(docs/decisions/0003-one-operation-hosts-another-recomputes.md).
"""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import dagster as dg

from rivermark.dagster.completeness import dashboard_assets
from rivermark.dagster.days import Starts
from rivermark.dagster.jobs.hosting import Host
from rivermark.dagster.jobs.names import by_days, days_operation, days_pool, in_order, operation
from rivermark.dagster.jobs.recompute import Recomputing
from rivermark.dagster.jobs.run_config import HostConfig, RecomputeConfig
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.resources.spark import SparkResource
from rivermark.dagster.specs import landing_spec, progress_spec, table_spec
from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.table import Table
from rivermark.model.topology import Topology

Results = Iterator[dg.MaterializeResult[None]]


def assets_of(
    topology: Topology, state: Path, starts: Starts
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """The assets of every group, and the sources that they begin with.

    What runs have found out of the tables' columns is in the `state` of a home, and `starts` are
    the first days of those by days.
    """
    # Ingests that share a source share its asset.
    landings = [landing_spec(stream) for stream in topology.streams if isinstance(stream, Ingest)]
    assets: list[dg.AssetsDefinition | dg.AssetSpec] = [*{s.key: s for s in landings}.values()]
    for group in topology.groups():
        assets.append(hosted_assets(topology, group, state))
        assets += daily_assets(topology, group, state, starts)
    return [*assets, *dashboard_assets(topology)]


def hosted_assets(topology: Topology, group: str, state: Path) -> dg.AssetsDefinition:
    """The group itself and its tables without days; a run of them hosts the streams."""
    host = Host(topology, group)

    @dg.multi_asset(
        name=operation(group),
        specs=[
            *(
                table_spec(topology, stream, table, state)
                for stream, table in _tables(topology, group)
                if not by_days(stream, table)
            ),
            progress_spec(topology, group),
        ],
        can_subset=True,
        pool=operation(group),
    )
    def host_streams(
        context: dg.AssetExecutionContext,
        config: HostConfig,
        rivermark_settings: SettingsResource,
        rivermark_spark: SparkResource,
    ) -> Results:
        yield from host.run(context, config, rivermark_settings, rivermark_spark)

    return host_streams


def daily_assets(
    topology: Topology, group: str, state: Path, starts: Starts
) -> list[dg.AssetsDefinition]:
    """The group's tables by days; a run of them computes a range of days again.

    One operation for each zone and first day: within one, Dagster allows no two mappings to the
    days of one table, and its telemetry asks each operation for its only partitions.
    """
    members: dict[tuple[str, date], list[tuple[AnyStream, Table]]] = {}
    for stream, table in _tables(topology, group):
        if table.days is not None and by_days(stream, table):
            members.setdefault((table.days.zone, table.days.start), []).append((stream, table))
    earliest = {zone: min(s for z, s in members if z == zone) for zone, _ in members}
    return [
        _recomputed(
            topology,
            group,
            days_operation(group, zone, None if start == earliest[zone] else start),
            members[zone, start],
            state,
            starts,
        )
        for zone, start in sorted(members)
    ]


def _recomputed(
    topology: Topology,
    group: str,
    name: str,
    tables: list[tuple[AnyStream, Table]],
    state: Path,
    starts: Starts,
) -> dg.AssetsDefinition:
    recomputing = Recomputing(topology, group)

    @dg.multi_asset(
        name=name,
        specs=[table_spec(topology, stream, table, state, starts) for stream, table in tables],
        can_subset=True,
        pool=days_pool(group),
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def recompute_days(
        context: dg.AssetExecutionContext,
        config: RecomputeConfig,
        rivermark_settings: SettingsResource,
        rivermark_spark: SparkResource,
    ) -> Results:
        yield from recomputing.run(context, config, rivermark_settings, rivermark_spark)

    return recompute_days


def _tables(topology: Topology, group: str) -> list[tuple[AnyStream, Table]]:
    return [(stream, table) for stream in topology.groups()[group] for table in in_order(stream)]
