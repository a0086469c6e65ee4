"""A topology as Dagster definitions: assets, checks, jobs, clocks, resources."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import dagster as dg

from rivermark.dagster.automation import clockwork_of
from rivermark.dagster.checks import checks_of
from rivermark.dagster.days import starts_of
from rivermark.dagster.group_assets import assets_of
from rivermark.dagster.jobs.names import SETTINGS, SPARK, TABLES
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.resources.spark import SparkResource
from rivermark.dagster.table_loader import table_loader
from rivermark.model.errors import DeclarationError
from rivermark.model.nearest import did_you_mean
from rivermark.model.topology import Topology

PARTS: Final = ("checks", "jobs", "schedules", "sensors")
"""What definitions have beside assets; each needs those before it, and schedules no sensors."""


def definitions_of(
    topology: Topology, settings: SettingsResource, parts: Collection[str] = PARTS
) -> dg.Definitions:
    """The definitions of a topology, for the home that `settings` names.

    They have no executor of their own: each job brings one, so that others keep theirs. Raises
    DeclarationError for parts that lack what they are made of.
    """
    _check_parts(parts)
    clockwork = clockwork_of(topology) if "jobs" in parts else None
    values = settings.settings()
    starts = starts_of(topology, values)
    return dg.Definitions(
        assets=assets_of(topology, values.state, starts),
        asset_checks=checks_of(topology, starts) if "checks" in parts else [],
        jobs=clockwork.jobs if clockwork else [],
        schedules=clockwork.schedules if clockwork and "schedules" in parts else [],
        sensors=clockwork.sensors if clockwork and "sensors" in parts else [],
        resources={
            SETTINGS: settings,
            SPARK: SparkResource(platform=settings),
            TABLES: table_loader(topology),
        },
    )


def _check_parts(parts: Collection[str]) -> None:
    for part in parts:
        if part not in PARTS:
            raise DeclarationError(
                f"definitions have no part {part!r}{did_you_mean(part, PARTS) or ';'} "
                f"there are {', '.join(PARTS)}, beside assets"
            )
    for part, needed in (("schedules", "jobs"), ("sensors", "jobs"), ("jobs", "checks")):
        if part in parts and needed not in parts:
            raise DeclarationError(f"parts: {part} start {needed}; give '{needed}', too")
