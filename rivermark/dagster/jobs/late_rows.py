"""The nightly merge of late rows into closed days, with all that is recomputed downstream."""

from datetime import UTC, date, datetime

import dagster as dg
from pydantic import Field

from rivermark.backfill.late.days import chosen_ingests, live_ingests
from rivermark.backfill.late.merge import MergedDay
from rivermark.backfill.late.run import MergeReport, anything_to_merge, merge_late
from rivermark.backfill.replace_changed import RecomputedTable
from rivermark.dagster.jobs import metadata
from rivermark.dagster.jobs.backfill import backfill_context, failing_step
from rivermark.dagster.jobs.check_results import asset_check_result
from rivermark.dagster.jobs.events import evaluation
from rivermark.dagster.jobs.names import by_days, prefixed, table_key
from rivermark.dagster.jobs.run_config import DayText, optional_day
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.resources.spark import SparkResource
from rivermark.model.stream import Stream
from rivermark.model.topology import Topology
from rivermark.monitor.completeness.checks import result_of_day
from rivermark.monitor.completeness.days import derived_days
from rivermark.settings import Settings

TAGS = {"dagster/max_runtime": "14400"}
Tick = dg.RunRequest | dg.SkipReason


class MergeLateConfig(dg.Config):
    """Selection of the late rows to merge."""

    streams: list[str] = Field(default=[], description="Names of ingests. Empty: all of them.")
    first: DayText = Field(default="", description="The first day, like 2020-01-01. Empty: any.")
    last: DayText = Field(default="", description="The last day. Empty: any.")


def merge_late_job(topology: Topology) -> dg.JobDefinition:
    """One run merges the late rows of all ingests and recomputes the tables downstream."""

    @dg.op(
        name=prefixed("merge_late_rows"),
        description="Merges late rows of closed days, and recomputes what follows from them.",
    )
    def merge_late_rows(
        context: dg.OpExecutionContext,
        config: MergeLateConfig,
        rivermark_settings: SettingsResource,
        rivermark_spark: SparkResource,
    ) -> None:
        with failing_step():
            report = merge_late(
                backfill_context(context, topology, rivermark_settings, rivermark_spark),
                chosen_ingests(topology, config.streams),
                first=optional_day(config.first),
                last=optional_day(config.last),
            )
        for event in events_of(topology, report):
            context.log_event(event)
        for check in evaluations_of(rivermark_settings.settings(), topology, report):
            context.log_event(check)  # type: ignore[arg-type] # it takes them, its annotation does not say so
        context.add_output_metadata(of_report(report))
        if report.downstream.blocked:
            reasons = "\n".join(report.downstream.blocked.values())
            raise dg.Failure(description=reasons, allow_retries=False)

    @dg.job(
        executor_def=dg.in_process_executor,
        name=prefixed("merge_late"),
        description="Late rows into the closed days that they belong to, and tables downstream.",
        tags=TAGS,
    )
    def merging() -> None:
        merge_late_rows()

    return merging


def merge_late_schedule(topology: Topology, job: dg.JobDefinition) -> dg.ScheduleDefinition:
    """Each night after the days were checked, when a closed day has late rows."""

    @dg.schedule(
        name=prefixed("merge_late_nightly"),
        cron_schedule="41 1 * * *",
        job=job,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Merges late rows of closed days; starts nothing where there are none.",
    )
    def nightly(rivermark_settings: SettingsResource) -> Tick:
        if not anything_to_merge(rivermark_settings.settings(), topology, live_ingests(topology)):
            return dg.SkipReason("no closed day has late rows to merge")
        return dg.RunRequest()

    return nightly


def events_of(topology: Topology, report: MergeReport) -> list[dg.AssetMaterialization]:
    """One event for each ingest, and one for each day whose rows differ now."""
    events = []
    for name in dict.fromkeys(day.stream for day in report.days):
        days = [day for day in report.days if day.stream == name]
        key = table_key(topology.named(name).tables[0])
        events.append(dg.AssetMaterialization(key, metadata=of_ingest(days)))
    for recomputed in report.downstream.recomputed:
        table = topology.table(recomputed.table)
        writer = topology.writer(table)
        if writer is not None and by_days(writer, table):
            events += [
                dg.AssetMaterialization(
                    table_key(table), partition=day.isoformat(), metadata=of_day(recomputed, day)
                )
                for day in sorted(recomputed.changed.days)
            ]
    return events


def evaluations_of(
    settings: Settings, topology: Topology, report: MergeReport
) -> list[dg.AssetCheckEvaluation]:
    """The checks of the recomputed days, evaluated again."""
    evaluations = []
    for recomputed in report.downstream.recomputed:
        stream = topology.writer(topology.table(recomputed.table))
        if not isinstance(stream, Stream) or recomputed.table != stream.tables[0].name:
            continue
        days = recomputed.days
        if not (days and by_days(stream, stream.tables[0])):
            continue
        for day in derived_days(settings, topology, stream, min(days), max(days)):
            if day.day in days:
                result = asset_check_result(stream.tables[0], result_of_day(day))
                evaluations.append(evaluation(result, day.day.isoformat()))
    return evaluations


def of_ingest(days: list[MergedDay]) -> metadata.Metadata:
    """The merged days of an ingest, with rows and money before and after."""
    rows = []
    for day in days:
        counts = (day.rows_before, day.rows_merged, day.rows)
        amounts = (day.money_before, day.money_merged, day.money)
        rows.append(
            [
                str(day.day),
                *(f"{count:,}" for count in counts),
                *("" if amount is None else f"{amount:,.2f}" for amount in amounts),
            ]
        )
    numeric = ["rows before", "merged", "rows after", "money before", "merged", "money after"]
    return {
        metadata.MODE: dg.MetadataValue.text("merge"),
        "rows_folded": dg.MetadataValue.int(sum(day.rows_merged for day in days)),
        "days_folded": dg.MetadataValue.int(len(days)),
        "days": dg.MetadataValue.md(metadata.markdown(["day", *numeric], rows, right=numeric)),
    }


def of_day(recomputed: RecomputedTable, day: date) -> metadata.Metadata:
    """A day of a derived table before and after."""
    return {
        metadata.MODE: dg.MetadataValue.text("merge"),
        "rows_before": dg.MetadataValue.int(recomputed.rows_before.get(day, 0)),
        "rows_after": dg.MetadataValue.int(recomputed.rows_after.get(day, 0)),
    }


def of_report(report: MergeReport) -> metadata.Metadata:
    """The whole merge, at its step."""
    pending = report.downstream.pending
    listed = [f"{name} {day}" for name, days in pending.items() for day in sorted(days)]
    return {
        "rows_folded": dg.MetadataValue.int(report.rows),
        "days_folded": dg.MetadataValue.int(len(report.days)),
        "days_changed_below": dg.MetadataValue.int(report.downstream.days_changed),
        "folds_taken_up": dg.MetadataValue.int(report.resumed),
        "owed": dg.MetadataValue.text(", ".join(listed) or "nothing"),
        "at": dg.MetadataValue.timestamp(datetime.now(UTC)),
    }
