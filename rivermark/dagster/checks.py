"""The checks of streams and tables as asset checks, with what each observed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial

import dagster as dg
from pyspark.sql import SparkSession

from rivermark.dagster.completeness import day_checks
from rivermark.dagster.days import Starts, day_check, day_evaluated
from rivermark.dagster.jobs.check_results import Evaluate, evaluated, every_result
from rivermark.dagster.jobs.input_match import MATCH_CHECK, compared_streams, match_result
from rivermark.dagster.jobs.names import by_days, evaluated_by, progress_key, stem, table_key
from rivermark.dagster.jobs.suites import (
    DAY_SUITE_CHECK,
    SUITE_CHECK,
    suite_result,
    suite_results_of_days,
)
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.resources.spark import SparkResource
from rivermark.model.stream import AnyStream
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.monitor.checks.check import StreamCheck
from rivermark.monitor.checks.registry import checks_of_stream, retention_checks
from rivermark.monitor.completeness.checks import completeness_checks
from rivermark.quality.suites import suites_of
from rivermark.settings import Settings

Results = Iterator[dg.AssetCheckResult]
EvaluateOnSpark = Callable[[SparkSession, Settings], dg.AssetCheckResult]


def checks_of(topology: Topology, starts: Starts) -> list[dg.AssetChecksDefinition]:
    """The checks of every group: of streams, of their days, and the suites of their tables."""
    definitions: list[dg.AssetChecksDefinition] = []
    for group, streams in topology.groups().items():
        complete = [c for s in streams for c in completeness_checks(topology, s)]
        retained = [c for s in streams for c in retention_checks(s)]
        definitions += [
            stream_checks("claims", group, [c for s in streams for c in checks_of_stream(s)]),
            stream_checks("versions", group, retained, evaluated_by("upkeep", "each night")),
            *([stream_checks("completeness", group, complete)] if complete else ()),
            *day_checks(topology, group, starts),
            suite_checks(topology, group),
            *day_suite_checks(topology, group, starts),
            *match_checks(topology, group),
        ]
    return definitions


def stream_checks(
    kind: str, group: str, checks: Sequence[StreamCheck], when: str = ""
) -> dg.AssetChecksDefinition:
    """Checks of a group's streams as one operation, which starts no JVM.

    `when` says what evaluates them, where the console does not.
    """
    by_key = {dg.AssetCheckKey(table_key(check.table), check.name): check for check in checks}

    @dg.multi_asset_check(
        name=f"{stem(group)}_{kind}",
        specs=[
            dg.AssetCheckSpec(
                name=key.name,
                asset=key.asset_key,
                description=f"{check.description} {when}".rstrip(),
                # In a run that also hosts the streams, they come first.
                additional_deps=[progress_key(group)],
                metadata={"stream": check.stream},
            )
            for key, check in by_key.items()
        ],
        can_subset=True,
    )
    def evaluate_checks(
        context: dg.AssetCheckExecutionContext, rivermark_settings: SettingsResource
    ) -> Results:
        settings, now = rivermark_settings.settings(), datetime.now(UTC)
        yield from _results(
            context, {key: partial(evaluated, c, settings, now) for key, c in by_key.items()}
        )

    return evaluate_checks


def suite_checks(topology: Topology, group: str) -> dg.AssetChecksDefinition:
    """The suites of a group's published and admitted tables, by Great Expectations."""
    return _on_spark(
        f"{stem(group)}_suites",
        [
            (
                dg.AssetCheckSpec(
                    name=SUITE_CHECK,
                    asset=table_key(table),
                    description=f"The table meets the expectations of suite '{suite.name}'. "
                    + evaluated_by("suites", "and by the group's live run"),
                    additional_deps=[progress_key(group)],
                ),
                partial(suite_result, table=table, suite=suite),
            )
            for stream in topology.groups()[group]
            for table, suite in suites_of(stream)
        ],
    )


def match_checks(topology: Topology, group: str) -> list[dg.AssetChecksDefinition]:
    """The check of a group's derived tables that computes a sample of their days again.

    The job of the suites evaluates it, and the page of a table: it costs some days' recompute a
    stream.
    """
    checks: list[tuple[dg.AssetCheckSpec, EvaluateOnSpark]] = [
        (
            dg.AssetCheckSpec(
                name=MATCH_CHECK,
                asset=table_key(stream.tables[0]),
                description=(
                    "A sample of closed days, computed again, has the count and the fingerprint "
                    f"of the rows that the stream's tables hold. {evaluated_by('suites')}"
                ),
                additional_deps=[progress_key(group)],
                metadata={"stream": stream.name},
            ),
            partial(match_result, topology=topology, stream=stream),
        )
        for stream in compared_streams(topology.groups()[group])
    ]
    return [_on_spark(f"{stem(group)}_matches", checks)] if checks else []


def _on_spark(
    name: str, checks: Sequence[tuple[dg.AssetCheckSpec, EvaluateOnSpark]]
) -> dg.AssetChecksDefinition:
    """Checks as one operation with a Spark session."""

    @dg.multi_asset_check(name=name, specs=[spec for spec, _ in checks], can_subset=True)
    def evaluate_on_spark(
        context: dg.AssetCheckExecutionContext,
        rivermark_settings: SettingsResource,
        rivermark_spark: SparkResource,
    ) -> Results:
        session, settings = rivermark_spark.spark_session, rivermark_settings.settings()
        yield from _results(
            context, {spec.key: partial(evaluate, session, settings) for spec, evaluate in checks}
        )

    return evaluate_on_spark


def day_suite_checks(
    topology: Topology, group: str, starts: Starts
) -> list[dg.AssetChecksDefinition]:
    """For each table by days a check that evaluates its suite on one day; starts no JVM."""
    return [
        _suite_of_a_day(stream, table, suite, starts)
        for stream in topology.groups()[group]
        for table, suite in suites_of(stream)
        if by_days(stream, table)
    ]


def _suite_of_a_day(
    stream: AnyStream, table: Table, suite: Suite, starts: Starts
) -> dg.AssetChecksDefinition:
    def results(platform: SettingsResource, days: Sequence[date]) -> list[dg.AssetCheckResult]:
        return suite_results_of_days(platform.settings(), table, suite, days)

    description = f"The rows of the day meet suite '{suite.name}'. {day_evaluated()}"
    return day_check(stream, table, starts, DAY_SUITE_CHECK, description, results)


def _results(
    context: dg.AssetCheckExecutionContext, checks: Mapping[dg.AssetCheckKey, Evaluate]
) -> Results:
    """The results of the selected checks, in the order of their names."""
    keys = {
        f"{key.asset_key.to_user_string()} {key.name}": key
        for key in sorted(context.selected_asset_check_keys)
    }
    return every_result({name: checks[key] for name, key in keys.items()}, keys)
