"""The settings of a Dagster instance that streams need, as a sentence for each that it lacks."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg


def lacking(instance: dg.DagsterInstance) -> Iterator[str]:
    """A sentence for each setting of `dagster.yaml` without which streams run unguarded.

    An instance without a folder, as tests and `dagster job execute` have it, lacks nothing.
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
