"""The settings of a Dagster instance that streams need, as a sentence for each that it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import dagster as dg
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import InstigatorStatus

from rivermark.dagster.jobs.names import RESTART_SENSOR, prefixed

SENSORS: Final = "SENSOR"
"""How an instance calls its daemon that evaluates sensors."""


def lacking(instance: dg.DagsterInstance, *, live: bool = False) -> Iterator[str]:
    """A sentence for each setting of `dagster.yaml` without which streams run unguarded.

    And, of a run that is `live`, for a sensor or a daemon without which nothing starts it again. An
    instance without a folder, as tests and `dagster job execute` have it, lacks nothing.
    """
    if instance.is_ephemeral:
        return
    pools = instance.get_concurrency_config().pool_config
    if pools.default_pool_limit != 1:
        yield (
            "two runs of a group may start at once, of which one then fails: set "
            "concurrency.pools.default_limit to 1 in dagster.yaml"
        )
    elif pools.pool_granularity is None or pools.pool_granularity.value != "run":
        yield (
            "a run waits for its group with a process and an engine: set "
            "concurrency.pools.granularity to run in dagster.yaml"
        )
    if not instance.run_monitoring_enabled:
        yield (
            "runs whose process is gone count as running, and are not started again: set "
            "run_monitoring.enabled to true in dagster.yaml"
        )
    elif instance.run_monitoring_max_runtime_seconds:
        yield (
            "a general time limit ends runs that do not say otherwise: leave "
            "run_monitoring.max_runtime_seconds out of dagster.yaml"
        )
    if live:
        yield from _not_started_again(instance)


def _not_started_again(instance: dg.DagsterInstance) -> Iterator[str]:
    name = prefixed(RESTART_SENSOR)
    stopped = instance.all_instigator_state(
        instigator_type=InstigatorType.SENSOR, instigator_statuses={InstigatorStatus.STOPPED}
    )
    if any(state.name == name for state in stopped):
        yield (
            f"the sensor {name} is switched off, and a live run that dies is not started again: "
            "switch it on (Automation, in Dagster)"
        )
    elif not instance.get_daemon_statuses([SENSORS])[SENSORS].healthy:
        yield (
            f"no daemon evaluates sensors, and {name} starts no live run again: run dagster dev, "
            "or dagster-daemon run"
        )
