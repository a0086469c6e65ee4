"""A topology as Dagster definitions: assets, checks, jobs, clocks, resources."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import dagster as dg

from rivermark.dagster.checks import checks_of
from rivermark.dagster.days import starts_of
from rivermark.dagster.group_assets import assets_of
from rivermark.dagster.jobs.asset_job import AssetJob
from rivermark.dagster.jobs.checks import suites_job, watch_job
from rivermark.dagster.jobs.dashboard import dashboard_job, dashboard_schedule
from rivermark.dagster.jobs.day_reports import report_days_job
from rivermark.dagster.jobs.desired_state import desired_state_job
from rivermark.dagster.jobs.erasure import erase_job
from rivermark.dagster.jobs.ingest_replay import replay_ingest_job
from rivermark.dagster.jobs.late_rows import merge_late_job, merge_late_schedule
from rivermark.dagster.jobs.maintenance import upkeep_job
from rivermark.dagster.jobs.names import SETTINGS, SPARK, TABLES
from rivermark.dagster.jobs.reprocessing import reprocess_jobs
from rivermark.dagster.jobs.savepoints import savepoint_job
from rivermark.dagster.jobs.schedules import (
    catch_up_schedule,
    suites_schedule,
    upkeep_schedule,
    watch_schedule,
)
from rivermark.dagster.jobs.streams import catch_up_job, live_job
from rivermark.dagster.report_sensor import report_sensor
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.resources.spark import SparkResource
from rivermark.dagster.sensors import restart_sensor
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


@dataclass(frozen=True)
class Clockwork:
    """Schedules and sensors, and the jobs that they start."""

    jobs: list[dg.JobDefinition | AssetJob]
    schedules: list[dg.ScheduleDefinition]
    sensors: list[dg.SensorDefinition]


def clockwork_of(topology: Topology) -> Clockwork:
    """Two jobs a group, and those that serve all of them."""
    groups = list(topology.groups())
    live = [live_job(topology, group) for group in groups]
    catch_up = {group: catch_up_job(topology, group) for group in groups}
    watch, suites, dashboard = watch_job(topology), suites_job(topology), dashboard_job()
    schedules = [catch_up_schedule(group, job) for group, job in catch_up.items()]
    schedules += [watch_schedule(topology, watch), dashboard_schedule(topology, dashboard)]
    maintaining = upkeep_job(topology)
    merging = merge_late_job(topology)
    schedules += [merge_late_schedule(topology, merging), upkeep_schedule(maintaining)]
    if suites is not None:
        schedules.append(suites_schedule(suites))
    return Clockwork(
        jobs=[
            *live,
            *catch_up.values(),
            watch,
            dashboard,
            *([suites] if suites is not None else []),
            merging,
            replay_ingest_job(topology),
            maintaining,
            *reprocess_jobs(topology),
            report_days_job(topology),
            erase_job(topology),
            savepoint_job(topology),
            desired_state_job(topology, "run"),
            desired_state_job(topology, "paused"),
        ],
        schedules=schedules,
        sensors=[restart_sensor(topology, live), report_sensor(topology)],
    )
