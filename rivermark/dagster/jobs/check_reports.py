"""Results of checks that the console evaluated, reported to a Dagster that does not know them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime

import dagster as dg

from rivermark.dagster.jobs.names import table_key
from rivermark.model.topology import Topology
from rivermark.monitor.checks.history import UNANSWERED, newest_results
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.monitor.completeness.checks import completeness_checks
from rivermark.settings import Settings


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
