"""The table of contents: everything that Dagster knows of this platform."""

from __future__ import annotations

from platform_defs.loading import without_collections

with without_collections():
    from assets.topology import TOPOLOGY
    from platform_defs.declared import definitions_of
    from resources.settings import SettingsResource

    defs = definitions_of(TOPOLOGY, SettingsResource())
