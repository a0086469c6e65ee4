"""The jobs, schedules and sensors of a topology, put together."""

from __future__ import annotations

from dataclasses import dataclass

import dagster as dg

from rivermark.dagster.jobs.asset_job import AssetJob
from rivermark.dagster.jobs.checks import suites_job, watch_job
from rivermark.dagster.jobs.dashboard import dashboard_job, dashboard_schedule
from rivermark.dagster.jobs.day_reports import report_days_job
from rivermark.dagster.jobs.desired_state import desired_state_job
from rivermark.dagster.jobs.erasure import erase_job
from rivermark.dagster.jobs.ingest_replay import replay_ingest_job
from rivermark.dagster.jobs.late_rows import merge_late_job, merge_late_schedule
from rivermark.dagster.jobs.maintenance import upkeep_job
from rivermark.dagster.jobs.reprocessing import reprocess_jobs
from rivermark.dagster.jobs.schedules import (
    catch_up_schedule,
    suites_schedule,
    upkeep_schedule,
    watch_schedule,
)
from rivermark.dagster.jobs.streams import catch_up_job, live_job
from rivermark.dagster.report_sensor import report_sensor
from rivermark.dagster.sensors import restart_sensor
from rivermark.model.topology import Topology


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
            desired_state_job(topology, "run"),
            desired_state_job(topology, "paused"),
        ],
        schedules=schedules,
        sensors=[restart_sensor(topology, live), report_sensor(topology)],
    )
