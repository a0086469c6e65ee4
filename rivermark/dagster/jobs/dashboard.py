"""The job that draws the dashboard, its schedule, the link to the page, and lateness proposals."""

import base64
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import dagster as dg

from rivermark.dagster.jobs.asset_job import AssetJob
from rivermark.dagster.jobs.names import prefixed, table_key
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.model.time import MILLISECOND
from rivermark.model.topology import Topology
from rivermark.monitor.charts import draw_lateness
from rivermark.monitor.dashboard.page_links import page_url
from rivermark.monitor.dashboard.refresh import page_path
from rivermark.monitor.lateness_proposal import Proposal
from rivermark.monitor.time_span import span
from rivermark.settings import PREFIX, Settings

DASHBOARD = "ops/dashboard"
LATENESS = "ops/lateness_proposals"
DASHBOARD_GROUP = "dashboard"

Tick = dg.RunRequest | dg.SkipReason


def dashboard_job() -> AssetJob:
    """Evaluates the days of every stream and draws the dashboard; starts no JVM."""
    return dg.define_asset_job(
        executor_def=dg.in_process_executor,
        name=prefixed("dashboard"),
        selection=dg.AssetSelection.assets(
            table_key(DASHBOARD), table_key(LATENESS)
        ).without_checks(),
        description=with_link("Days complete or not, late rows, proposals, and their page."),
        tags={"dagster/max_runtime": "1800"},
    )


def dashboard_schedule(topology: Topology, job: AssetJob) -> dg.ScheduleDefinition:
    """Each hour, once any table exists."""

    @dg.schedule(
        name=prefixed("dashboard_hourly"),
        cron_schedule="23 * * * *",
        job=job,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Evaluates days and draws the dashboard.",
    )
    def hourly(rivermark_settings: SettingsResource) -> Tick:
        lake = rivermark_settings.settings().lake()
        if not any(lake.exists(stream.tables[0]) for stream in topology.streams):
            return dg.SkipReason("no stream has a table yet")
        return dg.RunRequest()

    return hourly


def with_link(description: str, place: str = "") -> str:
    """A description with a link to a place on the dashboard of this environment's home.

    As Markdown: the page shows an address among metadata by its letters, the token among them.
    """
    own = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    page = _page(str(Path.cwd()), frozenset(own.items()))
    return f"{description}\n\n[Dashboard]({page}{place and '#'}{place})"


@cache
def _page(folder: str, environment: frozenset[tuple[str, str]]) -> str:
    """The page's address; the settings are read once for all tables and what these depend on."""
    settings = Settings()
    return page_url(settings, page_path(settings))


def proposals_table(proposals: Sequence[Proposal]) -> str:
    """The proposals as a Markdown table."""
    lines = ["| stream | allowed now | proposed | why |", "|---|---|---|---|"]
    for p in proposals:
        proposed = span(p.proposed // MILLISECOND) if p.proposed else "none"
        allowed = span(p.lateness // MILLISECOND)
        lines.append(f"| {p.stream} | {allowed} | {proposed} | {p.sentence} |")
    return "\n".join(lines)


def chart_of(settings: Settings, proposals: Sequence[Proposal]) -> str:
    """The chart as Markdown with the picture in it: the page shows it without any further file."""
    path = draw_lateness(proposals, settings.home / "charts" / "lateness_proposals.svg")
    picture = base64.b64encode(path.read_bytes()).decode()
    return f"![Share of late rows by allowed lateness](data:image/svg+xml;base64,{picture})"
