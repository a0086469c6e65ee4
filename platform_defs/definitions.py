"""The table of contents: everything that Dagster knows of this platform."""

from __future__ import annotations

from platform_defs.loading import without_collections

with without_collections():
    import dagster as dg

    from assets.topology import TOPOLOGY
    from platform_defs.checks import checks_of
    from platform_defs.clockwork import clockwork_of
    from platform_defs.group_assets import assets_of
    from resources.settings import SettingsResource
    from resources.spark import SparkResource

    clockwork = clockwork_of(TOPOLOGY)
    platform = SettingsResource()

    defs = dg.Definitions(
        assets=assets_of(TOPOLOGY),
        asset_checks=checks_of(TOPOLOGY),
        jobs=clockwork.jobs,
        schedules=clockwork.schedules,
        sensors=clockwork.sensors,
        resources={
            "platform": platform,
            "spark": SparkResource(platform=platform),
            "long_spark": SparkResource(platform=platform, long_lived=True),
        },
        # Always in one process: a killed parent of a step's process would leave it writing.
        executor=dg.in_process_executor,
    )
