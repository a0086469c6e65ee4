"""Days of a table as Dagster partitions, how days depend on days of another table, their checks."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta

import dagster as dg

from rivermark.dagster.jobs.events import evaluation
from rivermark.dagster.jobs.names import by_days, evaluated_by, table_key
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.model.stream import AnyStream
from rivermark.model.table import Daily, Table, days_between
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.settings import Settings

EvaluateDays = Callable[[SettingsResource, Sequence[date]], Sequence[dg.AssetCheckResult]]
"""The results of some days, in their order; one alone where there is no table."""
MONTH = timedelta(days=30)
"""What is shown of tables that have never had a row."""
Starts = Mapping[str, date]
"""The day with which the partitions of a table begin, by its name."""


def day_check(
    stream: AnyStream,
    table: Table,
    starts: Starts,
    name: str,
    description: str,
    evaluate: EvaluateDays,
) -> dg.AssetChecksDefinition:
    """A check with a result for each day of a table; starts no JVM.

    A run of a range of days reports each of them, and the worst as its own result.
    """

    def check_days(
        context: dg.AssetCheckExecutionContext, rivermark_settings: SettingsResource
    ) -> dg.AssetCheckResult:
        if not (context.has_partition_key or context.has_partition_key_range):
            raise dg.Failure(
                description=(
                    f"check '{name}' of '{table.name}' is evaluated by days: choose a day, or a "
                    "range of days, as the run's partition; the newest days are evaluated by each "
                    "run that draws the dashboard"
                ),
                allow_retries=False,
            )
        keys = context.partition_key_range
        days = days_between(date.fromisoformat(keys.start), date.fromisoformat(keys.end))
        results = evaluate(rivermark_settings, days)
        if len(days) == 1 or len(results) < len(days):
            return results[0]
        for day, result in zip(days, results, strict=True):
            event = evaluation(result, day.isoformat())
            # Accepted, though not by its annotation.
            context.op_execution_context.log_event(event)  # type: ignore[arg-type]
        failed = [day for day, result in zip(days, results, strict=True) if not result.passed]
        worst = min(results, key=lambda r: (r.passed, r.severity.value))
        summary = (
            f"{len(failed)} of {len(days)} days failed" if failed else f"{len(days)} days passed"
        )
        return worst._replace(description=f"{summary}; {worst.description}")

    with warnings.catch_warnings():
        # Results by partition are marked as a preview in 1.13, with a warning at each load.
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return dg.asset_check(
            name=name,
            asset=table_key(table),
            description=description,
            partitions_def=partitions_of(stream, table, starts),
        )(check_days)


def day_evaluated() -> str:
    """Sentence for the checks of days."""
    return evaluated_by("dashboard", "each hour, and by the run of Dagster that wrote the day")


def starts_of(topology: Topology, settings: Settings) -> Starts:
    """The first days of all tables by days: the first on which a run has seen rows.

    A table may hold the days of years from its declared first day on, of which a page would show
    thousands without rows; where no run has seen any, the newest month is shown. Tables of a group
    with one declared day begin together: an operation has the same partitions for all of its
    tables, and days of two zones depend on each other.
    """
    together: dict[tuple[str, date], list[tuple[str, date | None]]] = {}
    known = ClosedDays(settings.lake(), settings.state)
    for stream in topology.streams:
        for table in stream.tables:
            if by_days(stream, table) and table.days is not None:
                key = (stream.group, table.days.start)
                together.setdefault(key, []).append((table.name, known.first(stream.name)))
    starts: dict[str, date] = {}
    today = datetime.now(UTC).date()
    for (_, declared), tables in together.items():
        # A row of the future makes no bar that begins there.
        seen = [min(day, today) for _, day in tables if day is not None]
        start = max(declared, min(seen, default=today - MONTH))
        starts |= {name: start for name, _ in tables}
    return starts


def partitions_of(
    stream: AnyStream, table: Table, starts: Starts
) -> dg.DailyPartitionsDefinition | None:
    """The partitions of a table's asset: its days through today, in the zone of the table.

    None for a table that is not kept by days.
    """
    if table.days is None or not by_days(stream, table):
        return None
    start = datetime.combine(starts.get(table.name, table.days.start), time())
    return dg.DailyPartitionsDefinition(start, timezone=table.days.zone, end_offset=1)


def mapping(upstream: Daily, downstream: Daily) -> dg.PartitionMapping:
    """The days of a table that it reads on which each day of a table depends.

    Dagster refuses windows of two zones in one lineage (seen in 1.13.27), so a local day depends on
    the UTC day of the same date; the few hours beyond are the business of the stream's `margin`.
    """
    if upstream.zone != downstream.zone:
        return dg.IdentityPartitionMapping()
    with warnings.catch_warnings():
        # Marked beta in 1.13, told at each load: tables of one lineage begin on different days.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.TimeWindowPartitionMapping(allow_nonexistent_upstream_partitions=True)
