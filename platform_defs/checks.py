"""The claims about streams as asset checks: each answers one question, with its evidence."""

import warnings
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime

import dagster as dg

from jobs.check_results import Ask, every_answer, result_of_claim
from jobs.names import by_days, progress_key, stem, table_key
from jobs.suites import DAY_SUITE_CHECK, SUITE_CHECK, ask_suite, ask_suite_of_days
from platform_defs.completeness import trust_checks
from platform_defs.days import partitions_of
from resources.settings import SettingsResource
from resources.spark import SparkResource
from rivermark.model.stream import AnyStream
from rivermark.model.suite import Suite
from rivermark.model.table import Table, days_between
from rivermark.model.topology import Topology
from rivermark.monitor.checks.check import Claim
from rivermark.monitor.checks.registry import claims_of, promises_of
from rivermark.quality.suites import suites_of

Results = Iterator[dg.AssetCheckResult]


def checks_of(topology: Topology) -> list[dg.AssetChecksDefinition]:
    """The checks of every group: claims, and suites where streams declare some."""
    found = []
    for group in topology.groups():
        found.append(claim_checks(topology, group))
        found.append(promise_checks(topology, group))
        found += trust_checks(topology, group)
        found.append(suite_checks(topology, group))
        found += day_suite_checks(topology, group)
    return found


def claim_checks(topology: Topology, group: str) -> dg.AssetChecksDefinition:
    """What the lake itself can answer about the streams of a group."""
    found = [c for stream in topology.groups()[group] for c in claims_of(stream)]
    return checks_that_ask(f"{stem(group)}_claims", group, found)


def promise_checks(topology: Topology, group: str) -> dg.AssetChecksDefinition:
    """Whether the version promise holds for the group's tables. Upkeep evaluates it each night."""
    found = [c for stream in topology.groups()[group] for c in promises_of(stream)]
    return checks_that_ask(f"{stem(group)}_versions", group, found)


def checks_that_ask(name: str, group: str, found: Sequence[Claim]) -> dg.AssetChecksDefinition:
    """Claims as one operation; starts no engine."""
    claims = {dg.AssetCheckKey(table_key(claim.table), claim.name): claim for claim in found}

    @dg.multi_asset_check(
        name=name,
        specs=[
            dg.AssetCheckSpec(
                name=key.name,
                asset=key.asset_key,
                description=claim.description,
                # In a run that also hosts the streams, they come first.
                additional_deps=[progress_key(group)],
                metadata={"stream": claim.stream},
            )
            for key, claim in claims.items()
        ],
        can_subset=True,
    )
    def ask_the_lake(context: dg.AssetCheckExecutionContext, platform: SettingsResource) -> Results:
        settings, now = platform.settings(), datetime.now(UTC)

        def ask(key: dg.AssetCheckKey) -> Ask:
            claim = claims[key]
            return lambda: result_of_claim(claim, claim.ask(settings, now))

        yield from every_answer({_name(k): ask(k) for k in _ordered(context)})

    return ask_the_lake


def suite_checks(topology: Topology, group: str) -> dg.AssetChecksDefinition:
    """What Great Expectations is asked about each published or admitted table of a group."""
    suites = {
        dg.AssetCheckKey(table_key(table), SUITE_CHECK): (table, suite)
        for stream in topology.groups()[group]
        for table, suite in suites_of(stream)
    }

    @dg.multi_asset_check(
        name=f"{stem(group)}_suites",
        specs=[
            dg.AssetCheckSpec(
                name=key.name,
                asset=key.asset_key,
                description=f"The table meets the expectations of suite '{suite.name}'.",
                additional_deps=[progress_key(group)],
            )
            for key, (_, suite) in suites.items()
        ],
        can_subset=True,
    )
    def ask_great_expectations(
        context: dg.AssetCheckExecutionContext, platform: SettingsResource, spark: SparkResource
    ) -> Results:
        settings = platform.settings()

        def ask(key: dg.AssetCheckKey) -> Ask:
            table, suite = suites[key]
            return lambda: ask_suite(spark.spark_session, settings, table, suite)

        yield from every_answer({_name(k): ask(k) for k in _ordered(context)})

    return ask_great_expectations


def day_suite_checks(topology: Topology, group: str) -> list[dg.AssetChecksDefinition]:
    """For each table by days a check that asks its suite of one day; starts no engine."""
    return [
        _suite_of_a_day(stream, table, suite)
        for stream in topology.groups()[group]
        for table, suite in suites_of(stream)
        if by_days(stream, table)
    ]


def _suite_of_a_day(stream: AnyStream, table: Table, suite: Suite) -> dg.AssetChecksDefinition:
    def day_meets_expectations(
        context: dg.AssetCheckExecutionContext, platform: SettingsResource
    ) -> dg.AssetCheckResult:
        keys = context.partition_key_range
        first, last = date.fromisoformat(keys.start), date.fromisoformat(keys.end)
        days = days_between(first, last)
        results = ask_suite_of_days(platform.settings(), table, suite, days)
        return min(results, key=lambda r: (r.passed, r.severity.value))

    with warnings.catch_warnings():
        # Results by partition are marked as a preview in 1.13, told at each load.
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return dg.asset_check(
            name=DAY_SUITE_CHECK,
            asset=table_key(table),
            description=f"The rows of the day meet suite '{suite.name}'.",
            partitions_def=partitions_of(stream, table),
        )(day_meets_expectations)


def _ordered(context: dg.AssetCheckExecutionContext) -> list[dg.AssetCheckKey]:
    return sorted(context.selected_asset_check_keys, key=_name)


def _name(key: dg.AssetCheckKey) -> str:
    return f"{key.asset_key.to_user_string()} {key.name}"
