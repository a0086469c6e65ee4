"""The sensor that reports to Dagster what tables hold that its own runs did not report."""

from typing import Final

import dagster as dg
import msgspec

from jobs.names import GROUP_TAG
from jobs.table_reports import Seen, TableReporter
from platform_defs.sensors import ACTIVE_STATUSES
from resources.settings import SettingsResource
from rivermark.model.topology import Topology

EVERY_SECONDS: Final = 30


def report_sensor(topology: Topology) -> dg.SensorDefinition:
    """Keeps the instance in step with the lake: a bounded part of what it lacks at each tick."""

    @dg.sensor(
        name="report_tables",
        minimum_interval_seconds=EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reports rows and finished days that no run of Dagster has reported.",
    )
    def report_tables(
        context: dg.SensorEvaluationContext, platform: SettingsResource
    ) -> dg.SensorResult:
        reporter = TableReporter(
            context.instance,
            platform.settings(),
            topology,
            hosted_groups(context.instance),
            _seen(context.cursor),
        )
        reporter.report()
        for problem in reporter.problems:
            context.log.error(problem)
        return dg.SensorResult(
            skip_reason=f"{reporter.events:,} reports of tables and days",
            cursor=msgspec.json.encode(reporter.seen).decode(),
        )

    return report_tables


def hosted_groups(instance: dg.DagsterInstance) -> set[str]:
    """The groups whose streams a run of this instance hosts, or is about to."""
    runs = instance.get_runs(dg.RunsFilter(statuses=ACTIVE_STATUSES))
    return {run.tags[GROUP_TAG] for run in runs if GROUP_TAG in run.tags}


def _seen(cursor: str | None) -> dict[str, Seen]:
    """What the last tick found; nothing where that cannot be read, so that all is compared."""
    try:
        return msgspec.json.decode(cursor or "{}", type=dict[str, Seen])
    except msgspec.DecodeError:
        return {}
