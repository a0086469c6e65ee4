"""Declarations turned into Dagster definitions, to be merged into a project of any kind.

defs = dg.Definitions.merge(
    dg.Definitions(assets=[...]), rivermark.dagster.definitions(TOPOLOGY, prefix="streams")
)
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import dagster as dg

    from rivermark.model.topology import Topology

__all__ = ["day_closed", "definitions"]


def definitions(
    topology: Topology,
    *,
    prefix: str = "",
    parts: Collection[str] = ("checks", "jobs", "schedules", "sensors"),
    settings: dict[str, Any] | None = None,
) -> dg.Definitions:
    """The Dagster definitions of a topology.

    The keys of its assets begin with `prefix`, and so do the names of its jobs, operations, pools,
    schedules and sensors; its resources are `rivermark_settings`, `rivermark_spark` and
    `rivermark_tables`. `parts` are those that are wanted beside the assets. `settings` are put over
    those of the environment, such as `{"home": "/data/streams"}`. Each job has an executor of its
    own, and no other job gets it.

    Raises:
        DeclarationError: This process has definitions with another prefix, or a part is missing.
    """
    # The page's own processes import this package, and need none of Dagster.
    from rivermark.dagster.declared import definitions_of
    from rivermark.dagster.jobs.names import use_prefix
    from rivermark.dagster.loading import say_without_page
    from rivermark.dagster.resources.settings import SettingsResource

    use_prefix(prefix)
    say_without_page()
    return definitions_of(topology, SettingsResource(overrides=settings or {}), parts)


def day_closed() -> dg.AutomationCondition[dg.AssetKey | dg.AssetCheckKey]:
    """The condition of an asset with days that runs for each day which closes in all its inputs.

    And again for a day that is corrected: late rows were merged into it, or it was recomputed. Days
    that were closed when the asset got the condition are left to a backfill. Dagster's `eager` asks
    for the newest partition alone, which is of today, and not closed.
    """
    import dagster as dg

    newest_alone = dg.AutomationCondition.in_latest_time_window()
    return dg.AutomationCondition.eager().without(newest_alone).with_label("day_closed")
