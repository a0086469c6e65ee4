"""The sensor that reports to Dagster what tables hold that its own runs did not report."""

from datetime import datetime
from typing import Final

import dagster as dg
import msgspec

from rivermark.dagster.jobs.check_reports import newer_evaluations
from rivermark.dagster.jobs.names import GROUP_TAG, prefixed
from rivermark.dagster.jobs.table_reports import Seen, TableReporter
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.sensors import ACTIVE_STATUSES
from rivermark.model.errors import RivermarkError
from rivermark.model.topology import Topology

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
