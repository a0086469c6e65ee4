"""The run that judges days and draws the dashboard, its clock, and the link to the page."""

import os
from functools import cache
from pathlib import Path

import dagster as dg

from jobs.asset_job import AssetJob
from resources.settings import SettingsResource
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.monitor.dashboard.formatting import anchor
from rivermark.monitor.dashboard.refresh import PAGE
from rivermark.settings import Settings

DASHBOARD = dg.AssetKey(["ops", "dashboard"])
LATENESS = dg.AssetKey(["ops", "lateness_proposals"])
TRUST_GROUP = "trust"

Tick = dg.RunRequest | dg.SkipReason


def trust_job() -> AssetJob:
    """Judges the days of every stream and draws the dashboard; starts no engine."""
    return dg.define_asset_job(
        name="trust",
        selection=dg.AssetSelection.assets(DASHBOARD, LATENESS).without_checks(),
        description="Days complete or not, late rows, proposals, and the dashboard page.",
        tags={"dagster/max_runtime": "1800"},
    )


def trust_schedule(topology: Topology, job: AssetJob) -> dg.ScheduleDefinition:
    """Each hour, once there is any table to look at."""

    @dg.schedule(
        name="trust_hourly",
        cron_schedule="23 * * * *",
        job=job,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Judges days and draws the dashboard anew.",
    )
    def hourly(platform: SettingsResource) -> Tick:
        lake = platform.settings().lake()
        if not any(lake.exists(stream.tables[0]) for stream in topology.streams):
            return dg.SkipReason("no stream has a table yet")
        return dg.RunRequest()

    return hourly


def dashboard_link(stream: AnyStream) -> dg.UrlMetadataValue:
    """Where the dashboard tells of the stream: the page of this environment's home."""
    page = _page(str(Path.cwd()), os.environ.get("RIVERMARK_HOME"))
    return dg.MetadataValue.url(f"{page}#{anchor(stream.name)}")


@cache
def _page(folder: str, home: str | None) -> str:
    """The page's address; the settings are read once for all tables, for what they depend on."""
    return (Settings().home / PAGE).as_uri()
