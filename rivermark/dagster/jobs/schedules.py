"""Schedules: watching running streams, and catching up groups that do not stream."""

from datetime import UTC, datetime

import dagster as dg

from rivermark.dagster.jobs.asset_job import AssetJob
from rivermark.dagster.jobs.names import prefixed, stem, table_key
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.monitor.checks.liveness import ALIVE, alive
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.state_file import UnreadableState
from rivermark.settings import Settings

Tick = dg.RunRequest | dg.SkipReason


def catch_up_schedule(group: str, job: AssetJob) -> dg.ScheduleDefinition:
    """Brings a group up to date each hour, unless its streams run anyway. Stopped until wanted."""

    @dg.schedule(
        name=f"{stem(group)}_hourly",
        cron_schedule="17 * * * *",
        job=job,
        description=f"Catches '{group}' up each hour, for those who do not keep it streaming.",
    )
    def hourly(rivermark_settings: SettingsResource) -> Tick:
        if DesiredStore(rivermark_settings.settings().state).get(group).state == "run":
            return dg.SkipReason(f"group '{group}' is set to run: its streams do the work")
        return dg.RunRequest()

    return hourly


def watch_schedule(topology: Topology, job: AssetJob) -> dg.ScheduleDefinition:
    """Every five minutes: the sign of life of those streams that should run and do not.

    A stream that lives has its checks evaluated by its own run (jobs/live_checks.py).
    """

    @dg.schedule(
        name=prefixed("watch_streams"),
        cron_schedule="*/5 * * * *",
        job=job,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Fails the check 'is_alive' of streams that should run and do not.",
    )
    def watch(rivermark_settings: SettingsResource) -> Tick:
        settings = rivermark_settings.settings()
        store, now = DesiredStore(settings.state), datetime.now(UTC)
        running = [
            stream
            for group, streams in topology.groups().items()
            if store.get(group).state == "run"
            for stream in streams
        ]
        silent = [stream for stream in running if not lives(settings, stream, now)]
        if not silent:
            return dg.SkipReason(f"{len(running)} streams should run, and do")
        return dg.RunRequest(
            asset_selection=[],
            asset_check_keys=[
                dg.AssetCheckKey(table_key(stream.tables[0]), ALIVE) for stream in silent
            ],
        )

    return watch


def suites_schedule(job: AssetJob) -> dg.ScheduleDefinition:
    """Runs the suites each night, for tables that no live run looks after. Stopped until wanted."""
    return dg.ScheduleDefinition(
        name=prefixed("suites_nightly"), cron_schedule="41 4 * * *", job=job
    )


def upkeep_schedule(job: dg.JobDefinition) -> dg.ScheduleDefinition:
    """Maintains all tables each night, beside the streams."""
    return dg.ScheduleDefinition(
        name=prefixed("upkeep_nightly"),
        cron_schedule="23 3 * * *",
        job=job,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )


def lives(settings: Settings, stream: AnyStream, now: datetime) -> bool:
    """True if the stream has a heartbeat and progress; False where these cannot be read."""
    try:
        return alive(settings, stream, now).passed
    except UnreadableState:
        return False
