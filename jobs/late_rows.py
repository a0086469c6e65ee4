"""The nightly fold: late rows of closed days, and everything below computed again."""

from datetime import UTC, date, datetime

import dagster as dg
from pydantic import Field

from jobs import metadata
from jobs.completeness import result_of_day
from jobs.events import evaluation
from jobs.names import by_days, table_key
from jobs.run_config import DayText
from resources.settings import SettingsResource
from resources.spark import SparkResource
from rivermark.backfill.late.days import chosen_ingests, live_ingests
from rivermark.backfill.late.merge import MergedDay
from rivermark.backfill.late.run import MergeReport, anything_to_merge, merge_late
from rivermark.backfill.replace_changed import RecomputedTable
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import Stream
from rivermark.model.topology import Topology
from rivermark.monitor.completeness.on_demand import judge_days
from rivermark.settings import Settings

TAGS = {"dagster/max_runtime": "14400"}
Tick = dg.RunRequest | dg.SkipReason


class MergeLateConfig(dg.Config):
    """Which late rows are folded."""

    streams: list[str] = Field(default=[], description="Names of ingests. Empty: all of them.")
    first: DayText = Field(default="", description="The first day, like 2020-01-01. Empty: any.")
    last: DayText = Field(default="", description="The last day. Empty: any.")


def merge_late_job(topology: Topology) -> dg.JobDefinition:
    """One run folds all ingests and computes the tables below, in the order of the lineage."""

    @dg.op(
        name="fold_late_rows",
        description="Takes late rows of closed days in, and computes again what follows from them.",
    )
    def fold_late_rows(
        context: dg.OpExecutionContext,
        config: MergeLateConfig,
        platform: SettingsResource,
        spark: SparkResource,
    ) -> None:
        settings = platform.settings()
        try:
            report = merge_late(
                settings,
                topology,
                chosen_ingests(topology, config.streams),
                lambda: spark.spark_session,
                run_id=context.run.run_id,
                first=date.fromisoformat(config.first) if config.first else None,
                last=date.fromisoformat(config.last) if config.last else None,
                tell=context.log.info,
            )
        except RivermarkError as error:
            raise dg.Failure(description=str(error), allow_retries=False) from error
        for event in events_of(topology, report):
            context.log_event(event)
        for told in judged(settings, topology, report):
            context.log_event(told)  # type: ignore[arg-type] # it takes them, its annotation does not say so
        context.add_output_metadata(told_of(report))
        if report.blocked:
            raise dg.Failure(description="\n".join(report.blocked.values()), allow_retries=False)

    @dg.job(
        name="fold_late",
        description="Late rows into the closed days that they belong to, and all tables below.",
        tags=TAGS,
    )
    def folding() -> None:
        fold_late_rows()

    return folding


def merge_late_schedule(topology: Topology, job: dg.JobDefinition) -> dg.ScheduleDefinition:
    """Each night after the days were judged, when a closed day has late rows."""

    @dg.schedule(
        name="fold_late_nightly",
        cron_schedule="41 1 * * *",
        job=job,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Folds late rows of closed days; starts nothing where there are none.",
    )
    def nightly(platform: SettingsResource) -> Tick:
        if not anything_to_merge(platform.settings(), topology, live_ingests(topology)):
            return dg.SkipReason("no closed day has late rows to fold")
        return dg.RunRequest()

    return nightly


def events_of(topology: Topology, report: MergeReport) -> list[dg.AssetMaterialization]:
    """What the tables' pages show: each ingest once, and each day that differs now."""
    found = []
    for name in dict.fromkeys(day.stream for day in report.days):
        days = [day for day in report.days if day.stream == name]
        ingest = topology.named(name)
        found.append(dg.AssetMaterialization(table_key(ingest.tables[0]), metadata=of_ingest(days)))
    for recomputed in report.recomputed:
        table = topology.table(recomputed.table)
        writer = topology.writer(table)
        if isinstance(writer, Stream) and by_days(writer, table):
            found += [
                dg.AssetMaterialization(
                    table_key(table), partition=day.isoformat(), metadata=of_day(recomputed, day)
                )
                for day in sorted(recomputed.changed.days)
            ]
    return found


def judged(
    settings: Settings, topology: Topology, report: MergeReport
) -> list[dg.AssetCheckEvaluation]:
    """The checks of the days that were computed again, asked anew."""
    found = []
    for recomputed in report.recomputed:
        stream = topology.writer(topology.table(recomputed.table))
        if not isinstance(stream, Stream) or recomputed.table != stream.tables[0].name:
            continue
        if not (recomputed.days and by_days(stream, stream.tables[0])):
            continue
        for day in judge_days(
            settings, topology, stream, min(recomputed.days), max(recomputed.days)
        ):
            if day.day in recomputed.days:
                told = result_of_day(stream.tables[0], day)
                found.append(evaluation(told, day.day.isoformat()))
    return found


def of_ingest(days: list[MergedDay]) -> metadata.Metadata:
    """An ingest's folded days in figures."""
    lines = ["| day | rows before | folded | rows after | money before | folded | money after |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|"]
    for d in days:
        amounts = (d.money_before, d.money_merged, d.money)
        shown = " | ".join("" if a is None else f"{a:,.2f}" for a in amounts)
        lines.append(f"| {d.day} | {d.rows_before:,} | {d.rows_merged:,} | {d.rows:,} | {shown} |")
    return {
        metadata.MODE: dg.MetadataValue.text("fold"),
        "rows_folded": dg.MetadataValue.int(sum(d.rows_merged for d in days)),
        "days_folded": dg.MetadataValue.int(len(days)),
        "days": dg.MetadataValue.md("\n".join(lines)),
    }


def of_day(recomputed: RecomputedTable, day: date) -> metadata.Metadata:
    """A day of a derived table before and after."""
    return {
        metadata.MODE: dg.MetadataValue.text("fold"),
        "rows_before": dg.MetadataValue.int(recomputed.rows_before.get(day, 0)),
        "rows_after": dg.MetadataValue.int(recomputed.rows_after.get(day, 0)),
    }


def told_of(report: MergeReport) -> metadata.Metadata:
    """The whole fold, at its step."""
    owed = [f"{name} {day}" for name, days in report.owed.items() for day in sorted(days)]
    return {
        "rows_folded": dg.MetadataValue.int(report.rows),
        "days_folded": dg.MetadataValue.int(len(report.days)),
        "days_changed_below": dg.MetadataValue.int(report.days_changed),
        "folds_taken_up": dg.MetadataValue.int(report.taken_up),
        "owed": dg.MetadataValue.text(", ".join(owed) or "nothing"),
        "at": dg.MetadataValue.timestamp(datetime.now(UTC)),
    }
