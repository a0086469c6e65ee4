"""The jobs of a group: one runs until it is stopped, one brings it up to date and checks it."""

from __future__ import annotations

from typing import Final

import dagster as dg

from rivermark.dagster.jobs.asset_job import AssetJob
from rivermark.dagster.jobs.checks import check_keys
from rivermark.dagster.jobs.names import (
    GROUP_TAG,
    MODE_TAG,
    NO_TIME_LIMIT,
    catch_up_job_name,
    hosted,
    live_job_name,
    operation,
)
from rivermark.dagster.jobs.run_config import HostConfig, Mode
from rivermark.model.topology import Topology

HOURS_6: Final = {"dagster/max_runtime": str(6 * 3600)}
"""A bounded run that takes longer hangs; Dagster's monitoring then ends it."""


def live_job(topology: Topology, group: str) -> AssetJob:
    """Runs the group's streams until they are stopped. The sensor starts it again.

    Checks are not part of it: a step below one that never ends would never start.
    """
    return dg.define_asset_job(
        executor_def=dg.in_process_executor,
        name=live_job_name(group),
        selection=hosted(topology, group).without_checks(),
        description=f"The streams of '{group}', running until somebody cancels or pauses them.",
        config=_config(group, Mode.continuous),
        tags={
            GROUP_TAG: group,
            MODE_TAG: Mode.continuous.value,
            # Counts against the limit for streams and not against that for other runs.
            "kind": "stream",
            **NO_TIME_LIMIT,
        },
    )


def catch_up_job(topology: Topology, group: str) -> AssetJob:
    """Drains what is there through the group's streams, then evaluates every check of the group."""
    return dg.define_asset_job(
        executor_def=dg.in_process_executor,
        name=catch_up_job_name(group),
        selection=hosted(topology, group).without_checks()
        | dg.AssetSelection.checks(*check_keys(topology.groups()[group])),
        description=f"Brings the streams of '{group}' up to date, checks their tables, then ends.",
        config=_config(group, Mode.bounded),
        tags={GROUP_TAG: group, MODE_TAG: Mode.bounded.value, **HOURS_6},
    )


def _config(group: str, mode: Mode) -> dg.RunConfig:
    return dg.RunConfig(ops={operation(group): HostConfig(mode=mode)})
