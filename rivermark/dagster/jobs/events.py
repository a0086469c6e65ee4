"""Reports of the runtime as events on the pages of the tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg

from rivermark.dagster.jobs import metadata
from rivermark.dagster.jobs.check_results import unanswered
from rivermark.dagster.jobs.day_reports import DayReporter
from rivermark.dagster.jobs.live_checks import Crash, LiveChecks
from rivermark.dagster.jobs.names import in_order, progress_key, table_key
from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.runtime.restart.outbox import Outbox
from rivermark.runtime.supervision.report import Report

Event = dg.AssetMaterialization | dg.AssetObservation


@dataclass
class Reporter:
    """Logs events for a run's streams as they report; called in the run's main thread.

    A table that got rows is materialized, so that what depends on it can follow; one that got none
    is observed, which shows that its stream lives. Days that became final are materialized as
    partitions by `days`. Tables in `returned` are left to the step's own results.
    """

    context: dg.AssetExecutionContext
    topology: Topology
    streams: Sequence[AnyStream]
    days: DayReporter
    returned: frozenset[str] = frozenset()
    checks: LiveChecks | None = None
    last: dict[str, Report] = field(default_factory=dict)
    _before: dict[str, dict[str, int | float]] = field(default_factory=dict)

    def __call__(self, report: Report) -> None:
        """Log one stream's events."""
        stream = self.topology.named(report.stream)
        self.last[report.stream] = report
        for table in in_order(stream):
            if table.name in self.returned:
                continue
            if event := self.event(stream, table, report):
                self.context.log_event(event)
        self.days.report(stream, report.closed_days)
        if self.days.mode == "continuous" and stream.name == self.streams[-1].name:
            self.context.log_event(self._group_event(stream.group))
            self._report_checks()
        self._before[report.stream] = report.numbers
        # Dagster keeps what was logged for the step's result, which here never comes: a run of
        # weeks would hold every report in memory.
        for _ in self.context.op_execution_context.consume_events():
            pass

    def event(self, stream: AnyStream, table: Table, report: Report) -> Event | None:
        """The event of one table; none of a table that got no rows, but of a stream's first."""
        changed = self._rows(stream, table, report) > 0
        kind = dg.AssetMaterialization if changed else dg.AssetObservation
        if not changed and table.name != stream.tables[0].name:
            return None
        return kind(asset_key=table_key(table), metadata=self.describe(stream, table, report))

    def describe(self, stream: AnyStream, table: Table, report: Report) -> metadata.Metadata:
        """The metadata of an event: the stream's figures at its first table, rows at the others."""
        mode = metadata.of_mode(self.days.mode)
        if table.name != stream.tables[0].name:
            rows = {"rows_out": self._rows(stream, table, report)}
            return metadata.of_numbers(rows) | mode
        return (
            metadata.of_numbers(report.numbers)
            | metadata.of_watermark(report.watermark)
            | metadata.of_pending(report.pending)
            | metadata.of_error(report.error)
            | mode
        )

    def _report_checks(self) -> None:
        """Results of the checks beside the streams; one that crashed has failed."""
        for result in self.checks.take() if self.checks else []:
            if isinstance(result, Crash):
                self.context.log.error(
                    f"check {result.name} could not be evaluated: {result.error}"
                )
                result = unanswered(result.key, result.error)
            self.context.log_event(evaluation(result))
        if self.checks is not None:
            # The restart sensor has them sent.
            group = self.streams[-1].group
            outbox, troubles = Outbox(self.days.settings.state), self.checks.troubles()
            outbox.update(f"checks {group}", troubles, all_seen=self.checks.decided)

    def _group_event(self, group: str) -> dg.AssetMaterialization:
        """The sums of a group's streams, once they have all reported."""
        shown = metadata.of_numbers(total([r.numbers for r in self.last.values()]))
        return dg.AssetMaterialization(progress_key(group), metadata=shown)

    def _rows(self, stream: AnyStream, table: Table, report: Report) -> int:
        """Rows that the table got since the last report."""
        numbers = report.numbers
        if isinstance(stream, Ingest):
            if table.name == stream.raw.name:
                return int(numbers.get("rows_in", 0))
            for kept, total in ((stream.late, "late"), (stream.quarantine, "quarantined")):
                if table.name == kept.name:
                    before = self._before.get(stream.name, {}).get(total, 0)
                    return int(numbers.get(total, 0) - before)
        return int(numbers.get("rows_out", 0))


def total(numbers: Iterable[Mapping[str, int | float]]) -> dict[str, int | float]:
    """The numbers that can be summed over streams."""
    summed: dict[str, int | float] = {}
    for of_stream in numbers:
        for name in ("rows_in", "rows_out", "late", "quarantined", "batches"):
            summed[name] = summed.get(name, 0) + of_stream.get(name, 0)
    return summed


def evaluation(
    result: dg.AssetCheckResult, partition: str | None = None
) -> dg.AssetCheckEvaluation:
    """A result as an event, for checks that are no step of the run."""
    assert result.asset_key is not None  # noqa: S101 - every result here names its table
    assert result.check_name is not None  # noqa: S101
    return dg.AssetCheckEvaluation(
        asset_key=result.asset_key,
        check_name=result.check_name,
        passed=result.passed,
        metadata=dict(result.metadata),
        severity=result.severity,
        description=result.description,
        partition=partition,
    )
