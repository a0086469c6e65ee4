"""The jobs, schedules and sensors of a topology, put together."""

from __future__ import annotations

from dataclasses import dataclass

import dagster as dg

from jobs.asset_job import AssetJob
from jobs.checks import suites_job, watch_job
from jobs.dashboard import trust_job, trust_schedule
from jobs.day_reports import report_days_job
from jobs.desired_state import desired_state_job
from jobs.ingest_replay import replay_ingest_job
from jobs.late_rows import merge_late_job, merge_late_schedule
from jobs.maintenance import upkeep_job
from jobs.rehearsal import rehearsal_job
from jobs.reprocessing import reprocess_jobs
from jobs.schedules import (
    catch_up_schedule,
    suites_schedule,
    upkeep_schedule,
    watch_schedule,
)
from jobs.streams import catch_up_job, live_job
from platform_defs.report_sensor import report_sensor
from platform_defs.sensors import restart_sensor
from rivermark.model.topology import Topology


@dataclass(frozen=True)
class Clockwork:
    """What starts runs, and the jobs that it starts."""

    jobs: list[dg.JobDefinition | AssetJob]
    schedules: list[dg.ScheduleDefinition]
    sensors: list[dg.SensorDefinition]


def clockwork_of(topology: Topology) -> Clockwork:
    """Two jobs a group, and those that serve all of them."""
    groups = list(topology.groups())
    live = [live_job(topology, group) for group in groups]
    catch_up = {group: catch_up_job(topology, group) for group in groups}
    watch, suites, trust = watch_job(topology), suites_job(topology), trust_job()
    schedules = [catch_up_schedule(group, job) for group, job in catch_up.items()]
    schedules += [watch_schedule(topology, watch), trust_schedule(topology, trust)]
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
            trust,
            *([suites] if suites is not None else []),
            merging,
            replay_ingest_job(topology),
            maintaining,
            *reprocess_jobs(topology),
            rehearsal_job(topology),
            report_days_job(topology),
            desired_state_job(topology, "run"),
            desired_state_job(topology, "paused"),
        ],
        schedules=schedules,
        sensors=[restart_sensor(topology, live), report_sensor(topology)],
    )
