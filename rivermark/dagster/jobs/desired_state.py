"""Jobs that set the desired state of groups: run or paused."""

import dagster as dg
from pydantic import Field

from rivermark.dagster.jobs.names import prefixed
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.desired_state import DesiredState, DesiredStore


class DesiredStateConfig(dg.Config):
    """The groups whose desired state is set, and why."""

    groups: list[str] = Field(default=[], description="Names of groups. Empty: all of them.")
    reason: str = Field(default="", description="Why; shown beside the desired state.")


def desired_state_job(topology: Topology, state: DesiredState) -> dg.JobDefinition:
    """A job that records the desired state; the sensor or the run itself follows it."""
    name = {"run": "start_streams", "paused": "pause_streams"}[state]
    description = {
        "run": "Sets groups to run: the sensor starts them, and again whenever they die.",
        "paused": "Pauses groups: their runs stop between two batches and are not restarted.",
    }[state]

    @dg.op(name=prefixed(f"{name}_op"), description=description)
    def record_state(
        context: dg.OpExecutionContext,
        config: DesiredStateConfig,
        rivermark_settings: SettingsResource,
    ) -> None:
        for group in config.groups:
            topology.group(group)
        store = DesiredStore(rivermark_settings.settings().state)
        by = context.run.tags.get("user", "Dagster")
        for group in config.groups or topology.groups():
            store.set(group, state, by=by, reason=config.reason or f"run {context.run.run_id}")
            context.log.info(f"group '{group}': {state}")

    @dg.job(
        executor_def=dg.in_process_executor,
        name=prefixed(name),
        description=description,
        tags={"dagster/max_runtime": "300"},
    )
    def setting() -> None:
        record_state()

    return setting
