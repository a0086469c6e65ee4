"""The sensor that reports to Dagster what tables hold that its own runs did not report."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Final

import dagster as dg
import msgspec

from rivermark.dagster.jobs.names import GROUP_TAG, prefixed, table_key
from rivermark.dagster.jobs.table_reports import Seen, TableReporter
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.sensors import ACTIVE_STATUSES
from rivermark.model.errors import RivermarkError
from rivermark.model.topology import Topology
from rivermark.monitor.checks.history import UNANSWERED, newest_results
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.monitor.completeness.checks import completeness_checks
from rivermark.settings import Settings

EVERY_SECONDS: Final = 30


class Last(msgspec.Struct, frozen=True):
    """Memory of a tick: its tables, and the moment (UTC) of the newest result of a check."""

    tables: dict[str, Seen] = {}
    checks: datetime | None = None


def report_sensor(topology: Topology) -> dg.SensorDefinition:
    """Keeps the instance in step with the lake: a bounded part of what it lacks at each tick."""

    @dg.sensor(
        name=prefixed("report_tables"),
        minimum_interval_seconds=EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reports rows, finished days and results of checks that no run reported.",
    )
    def report_tables(
        context: dg.SensorEvaluationContext, rivermark_settings: SettingsResource
    ) -> dg.SensorResult:
        settings, last = rivermark_settings.settings(), _last(context.cursor)
        hosted = hosted_groups(context.instance)
        reporter = TableReporter(context.instance, settings, topology, hosted, last.tables)
        reporter.report()
        for problem in reporter.problems:
            context.log.error(problem)
        evaluated: list[tuple[datetime, dg.AssetCheckEvaluation]] = []
        try:
            again = reporter.reported
            evaluated += newer_evaluations(
                context.instance, settings, topology, last.checks, hosted=hosted, again=again
            )
        except RivermarkError as error:
            context.log.error(f"results of checks could not be read: {error}")
        newest = max([at for at, _ in evaluated], default=last.checks)
        return dg.SensorResult(
            skip_reason=(
                f"{reporter.events:,} reports of tables and days, {len(evaluated):,} of checks"
            ),
            cursor=msgspec.json.encode(Last(reporter.seen, newest)).decode(),
            asset_events=[evaluation for _, evaluation in evaluated],
        )

    return report_tables


def hosted_groups(instance: dg.DagsterInstance) -> set[str]:
    """The groups whose streams a run of this instance hosts, or is about to."""
    runs = instance.get_runs(dg.RunsFilter(statuses=ACTIVE_STATUSES))
    return {run.tags[GROUP_TAG] for run in runs if GROUP_TAG in run.tags}


def _last(cursor: str | None) -> Last:
    """Memory of the last tick; empty where it cannot be read, so that all is compared."""
    try:
        return msgspec.json.decode(cursor or "{}", type=Last)
    except msgspec.DecodeError:
        return Last()


def newer_evaluations(
    instance: dg.DagsterInstance,
    settings: Settings,
    topology: Topology,
    since: datetime | None,
    *,
    hosted: Collection[str],
    again: Collection[str],
) -> Iterator[tuple[datetime, dg.AssetCheckEvaluation]]:
    """The newest result of each check with its moment, of those that are newer than `since`.

    Left out is what the instance knows: a run that drew the dashboard has reported the days. Those
    of tables that were reported `again` count as new: Dagster takes a result that is older than its
    table's last event for none. Checks of `hosted` groups are evaluated by their runs, but for
    those of days.
    """
    known = {
        (check.table.name, check.name)
        for stream in topology.streams
        for check in (
            *(() if stream.group in hosted else checks_of_stream(stream)),
            *completeness_checks(topology, stream),
        )
    }
    tables = {table.name: table for stream in topology.streams for table in stream.tables}
    newer = {
        dg.AssetCheckKey(table_key(tables[each.table]), each.check): each
        for each in newest_results(settings, 1)
        if (each.table, each.check) in known
        and (since is None or each.at > since or each.table in again)
    }
    storage = instance.event_log_storage
    latest = storage.get_latest_asset_check_execution_by_key([*newer])
    for key, each in newer.items():
        reported = latest.get(key)
        if (
            reported is not None
            and each.table not in again
            and reported.create_timestamp >= each.at.timestamp()
        ):
            continue
        warns = each.result == "warn"
        yield (
            each.at.astimezone(UTC),
            dg.AssetCheckEvaluation(
                asset_key=key.asset_key,
                check_name=key.name,
                passed=each.passed,
                severity=dg.AssetCheckSeverity.WARN if warns else dg.AssetCheckSeverity.ERROR,
                description=each.observed,
                metadata={
                    "evaluated": dg.MetadataValue.timestamp(each.at),
                    **({"unanswered": True} if each.result == UNANSWERED else {}),
                },
            ),
        )
