"""The clocks: watching living streams, and catching up groups that do not stream."""

from collections.abc import Callable, Iterable

import dagster as dg

from jobs.asset_job import AssetJob
from jobs.names import stem
from resources.settings import SettingsResource
from rivermark.runtime.desired import DesiredStore
from rivermark.stream import AnyStream
from rivermark.topology import Topology

Tick = dg.RunRequest | dg.SkipReason
CheckKeys = Callable[[Iterable[AnyStream]], list[dg.AssetCheckKey]]


def catch_up_schedule(group: str, job: AssetJob) -> dg.ScheduleDefinition:
    """Brings a group up to date each hour, unless its streams run anyway. Stopped until wanted."""

    @dg.schedule(
        name=f"{stem(group)}_hourly",
        cron_schedule="17 * * * *",
        job=job,
        description=f"Catches '{group}' up each hour, for those who do not keep it streaming.",
    )
    def hourly(platform: SettingsResource) -> Tick:
        if DesiredStore(platform.settings().state).get(group).state == "run":
            return dg.SkipReason(f"group '{group}' is set to run: its streams do the work")
        return dg.RunRequest()

    return hourly


def while_streaming(
    topology: Topology, name: str, cron: str, job: AssetJob, keys: CheckKeys
) -> dg.ScheduleDefinition:
    """Evaluates, on a clock, those checks of a job whose group is meant to run."""

    @dg.schedule(
        name=name,
        cron_schedule=cron,
        job=job,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def look(platform: SettingsResource) -> Tick:
        store = DesiredStore(platform.settings().state)
        running = [
            stream
            for group, streams in topology.groups().items()
            if store.get(group).state == "run"
            for stream in streams
        ]
        if not (asked := keys(running)):
            return dg.SkipReason("no group that has such checks is set to run")
        return dg.RunRequest(asset_selection=[], asset_check_keys=asked)

    return look
