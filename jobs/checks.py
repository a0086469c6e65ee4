"""The runs that look at living streams: claims every few minutes, suites now and then."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from jobs.asset_job import AssetJob
from jobs.names import table_key
from jobs.suites import SUITE_CHECK
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.monitor.checks.registry import claims_of
from rivermark.quality.suites import suites_of

TAGS = {"dagster/max_runtime": "1800"}


def watch_job(topology: Topology) -> AssetJob:
    """Asks the lake for every claim about every stream; starts no engine."""
    return dg.define_asset_job(
        name="watch",
        selection=dg.AssetSelection.checks(*claim_keys(topology.streams)),
        description="Late rows, conservation, doubles and signs of life of all streams.",
        tags=TAGS,
    )


def suites_job(topology: Topology) -> AssetJob | None:
    """Runs the Great Expectations suites on the tables' newest versions, in one engine."""
    keys = suite_keys(topology.streams)
    if not keys:
        return None
    return dg.define_asset_job(
        name="suites",
        selection=dg.AssetSelection.checks(*keys),
        description="What Great Expectations is asked about the published tables.",
        tags=TAGS,
    )


def claim_keys(streams: Iterable[AnyStream]) -> list[dg.AssetCheckKey]:
    """The checks that the lake itself answers."""
    return [
        dg.AssetCheckKey(table_key(claim.table), claim.name)
        for stream in streams
        for claim in claims_of(stream)
    ]


def suite_keys(streams: Iterable[AnyStream]) -> list[dg.AssetCheckKey]:
    """The checks that Great Expectations answers."""
    return [
        dg.AssetCheckKey(table_key(table), SUITE_CHECK)
        for stream in streams
        for table, _ in suites_of(stream)
    ]


def check_keys(streams: Iterable[AnyStream]) -> list[dg.AssetCheckKey]:
    """Every check of these streams."""
    found = list(streams)
    return [*claim_keys(found), *suite_keys(found)]
