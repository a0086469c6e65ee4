"""Letting groups of streams run or rest, for people who sit at the Dagster page."""

import dagster as dg
from pydantic import Field

from resources.settings import SettingsResource
from rivermark.model.errors import UnknownStream
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.desired_state import DesiredState, DesiredStore


class WishConfig(dg.Config):
    """Whose wish it is for which groups."""

    groups: list[str] = Field(default=[], description="Names of groups. Empty: all of them.")
    reason: str = Field(default="", description="Why; shown to whoever looks later.")


def wish_job(topology: Topology, wish: DesiredState) -> dg.JobDefinition:
    """A job that writes the wish down; the sensor or the run itself follows it."""
    name = {"run": "start_streams", "paused": "pause_streams"}[wish]
    told = {
        "run": "Sets groups to run: the sensor starts them, and again whenever they die.",
        "paused": "Lets groups rest: their runs stop between two batches and are not restarted.",
    }[wish]

    @dg.op(name=f"{name}_op", description=told)
    def write_wish(
        context: dg.OpExecutionContext, config: WishConfig, platform: SettingsResource
    ) -> None:
        known = topology.groups()
        for group in config.groups:
            if group not in known:
                there = ", ".join(sorted(known))
                raise UnknownStream(f"no group is named {group!r}; there are: {there}")
        store = DesiredStore(platform.settings().state)
        by = context.run.tags.get("user", "Dagster")
        for group in config.groups or known:
            store.set(group, wish, by=by, reason=config.reason or f"run {context.run.run_id}")
            context.log.info(f"group '{group}': {wish}")

    @dg.job(name=name, description=told, tags={"dagster/max_runtime": "300"})
    def wishing() -> None:
        write_wish()

    return wishing
