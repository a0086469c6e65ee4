"""A topology as Dagster definitions: assets, checks, jobs, clocks, resources."""

from __future__ import annotations

import dagster as dg

from rivermark.dagster.automation import clockwork_of
from rivermark.dagster.checks import checks_of
from rivermark.dagster.days import starts_of
from rivermark.dagster.group_assets import assets_of
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.resources.spark import SparkResource
from rivermark.model.topology import Topology


def definitions_of(topology: Topology, platform: SettingsResource) -> dg.Definitions:
    """The table of contents of a topology, for the home that `platform` names."""
    clockwork = clockwork_of(topology)
    settings = platform.settings()
    starts = starts_of(topology, settings)
    return dg.Definitions(
        assets=assets_of(topology, settings.state, starts),
        asset_checks=checks_of(topology, starts),
        jobs=clockwork.jobs,
        schedules=clockwork.schedules,
        sensors=clockwork.sensors,
        resources={
            "platform": platform,
            "spark": SparkResource(platform=platform),
        },
        # Always in one process: a killed parent of a step's process would leave it writing.
        executor=dg.in_process_executor,
    )
