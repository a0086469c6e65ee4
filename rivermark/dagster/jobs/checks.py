"""The jobs that check live streams: their checks every few minutes, suites now and then."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from rivermark.dagster.jobs.asset_job import AssetJob
from rivermark.dagster.jobs.input_match import MATCH_CHECK, compared_streams
from rivermark.dagster.jobs.names import prefixed, table_key
from rivermark.dagster.jobs.suites import SUITE_CHECK
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.quality.suites import suites_of

TAGS = {"dagster/max_runtime": "1800"}


def watch_job(topology: Topology) -> AssetJob:
    """Evaluates every check of every stream; starts no JVM."""
    return dg.define_asset_job(
        executor_def=dg.in_process_executor,
        name=prefixed("watch"),
        selection=dg.AssetSelection.checks(*stream_check_keys(topology.streams)),
        description="Late rows, conservation, repeated rows and heartbeats of all streams.",
        tags=TAGS,
    )


def suites_job(topology: Topology) -> AssetJob | None:
    """Runs the Great Expectations suites on the tables' newest versions, in one Spark session.

    And compares a sample of closed days of derived tables with their inputs.
    """
    keys = [*suite_keys(topology.streams), *match_keys(topology.streams)]
    if not keys:
        return None
    return dg.define_asset_job(
        executor_def=dg.in_process_executor,
        name=prefixed("suites"),
        selection=dg.AssetSelection.checks(*keys),
        description=(
            "The Great Expectations suites of the published tables, and a sample of closed days "
            "compared with their inputs."
        ),
        tags=TAGS,
    )


def stream_check_keys(streams: Iterable[AnyStream]) -> list[dg.AssetCheckKey]:
    """The checks of the streams that need no JVM."""
    return [
        dg.AssetCheckKey(table_key(check.table), check.name)
        for stream in streams
        for check in checks_of_stream(stream)
    ]


def suite_keys(streams: Iterable[AnyStream]) -> list[dg.AssetCheckKey]:
    """The checks that Great Expectations evaluates."""
    return [
        dg.AssetCheckKey(table_key(table), SUITE_CHECK)
        for stream in streams
        for table, _ in suites_of(stream)
    ]


def match_keys(streams: Iterable[AnyStream]) -> list[dg.AssetCheckKey]:
    """The checks that compute a sample of days again."""
    return [
        dg.AssetCheckKey(table_key(stream.tables[0]), MATCH_CHECK)
        for stream in compared_streams(streams)
    ]


def check_keys(streams: Iterable[AnyStream]) -> list[dg.AssetCheckKey]:
    """Every check of these streams."""
    chosen = list(streams)
    return [*stream_check_keys(chosen), *suite_keys(chosen)]
