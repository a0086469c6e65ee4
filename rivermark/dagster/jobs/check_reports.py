"""Results of checks that the console evaluated, reported to a Dagster that does not know them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime

import dagster as dg

from rivermark.dagster.jobs.names import table_key
from rivermark.model.topology import Topology
from rivermark.monitor.checks.history import UNANSWERED, newest_results
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.settings import Settings


def newer_evaluations(
    settings: Settings,
    topology: Topology,
    since: datetime | None,
    *,
    hosted: Collection[str],
    again: Collection[str],
) -> Iterator[tuple[datetime, dg.AssetCheckEvaluation]]:
    """The newest result of each check with its moment, of those that are newer than `since`.

    Those of tables that were reported `again` count as new: Dagster takes a result that is older
    than its table's last event for none. Checks of `hosted` groups are evaluated by their runs.
    """
    known = {
        (check.table.name, check.name)
        for stream in topology.streams
        if stream.group not in hosted
        for check in checks_of_stream(stream)
    }
    tables = {table.name: table for stream in topology.streams for table in stream.tables}
    for each in newest_results(settings, 1):
        if (each.table, each.check) not in known:
            continue
        if since is not None and each.at <= since and each.table not in again:
            continue
        warns = each.result == "warn"
        yield (
            each.at.astimezone(UTC),
            dg.AssetCheckEvaluation(
                asset_key=table_key(tables[each.table]),
                check_name=each.check,
                passed=each.passed,
                severity=dg.AssetCheckSeverity.WARN if warns else dg.AssetCheckSeverity.ERROR,
                description=each.observed,
                metadata={
                    "evaluated": dg.MetadataValue.timestamp(each.at),
                    **({"unanswered": True} if each.result == UNANSWERED else {}),
                },
            ),
        )
