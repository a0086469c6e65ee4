"""The table of contents: everything that Dagster knows of this platform."""

from __future__ import annotations

from rivermark.dagster.loading import without_collections

with without_collections():
    from assets.topology import TOPOLOGY
    from rivermark.dagster.declared import definitions_of
    from rivermark.dagster.resources.settings import SettingsResource

    defs = definitions_of(TOPOLOGY, SettingsResource())
