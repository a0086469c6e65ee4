"""Admission repeated from raw, as a rehearsal whose report is the run's metadata."""

import dagster as dg
from pydantic import Field

from rivermark.backfill.as_of import parse_day
from rivermark.backfill.ingest_replay.decisions import IngestReplay
from rivermark.backfill.ingest_replay.run import replay_ingest
from rivermark.dagster.jobs import metadata
from rivermark.dagster.jobs.backfill import backfill_context, failing_step
from rivermark.dagster.jobs.names import prefixed, table_key
from rivermark.dagster.jobs.run_config import DayText
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.resources.spark import SparkResource
from rivermark.model.topology import Topology

SHOWN = 50


class ReplayIngestConfig(dg.Config):
    """Whose rows are decided again, of which days, and with which lateness."""

    stream: str = Field(description="The name of an ingest, such as taxi/fare_events.")
    first: DayText = Field(description="The first day, like 2020-01-01.")
    last: DayText = Field(default="", description="The last day. Empty: the first one.")
    lateness_seconds: float | None = Field(
        default=None, gt=0, description="How late rows may be instead. Empty: as declared."
    )


def replay_ingest_job(topology: Topology) -> dg.JobDefinition:
    """Repeats admission over raw rows and lists the decisions that change."""

    @dg.op(
        name=prefixed("decide_again"),
        description="Repeats admission over raw rows, by the rules as they are declared now.",
    )
    def decide_again(
        context: dg.OpExecutionContext,
        config: ReplayIngestConfig,
        rivermark_settings: SettingsResource,
        rivermark_spark: SparkResource,
    ) -> None:
        with failing_step():
            report = replay_ingest(
                backfill_context(context, topology, rivermark_settings, rivermark_spark),
                config.stream,
                parse_day(config.first),
                parse_day(config.last or config.first),
                lateness_seconds=config.lateness_seconds,
            )
        shown = of_report(report)
        context.log_event(
            dg.AssetObservation(table_key(topology.named(report.stream).tables[0]), metadata=shown)
        )
        context.add_output_metadata(shown)

    @dg.job(
        executor_def=dg.in_process_executor,
        name=prefixed("readmit"),
        description="How admission would decide today about rows that came before.",
        tags={"dagster/max_runtime": "14400"},
    )
    def replaying() -> None:
        decide_again()

    return replaying


def of_report(report: IngestReplay) -> metadata.Metadata:
    """Rows by how their decision changes, and the first of them by their place."""
    turns = [
        [t.before, t.after, f"{t.rows:,}", "" if t.money is None else f"{t.money:,.2f}"]
        for t in report.turns
    ]
    head = ["file", "row", "event_time", "before", "after"]
    rows = [[str(row[name]) for name in head] for row in report.sample[:SHOWN]]
    decisions = metadata.markdown(
        ["before", "after", "rows", "money"], turns, right=["rows", "money"]
    )
    return {
        metadata.MODE: dg.MetadataValue.text("readmit"),
        "rows_read": dg.MetadataValue.int(report.replayed.rows),
        "files_read": dg.MetadataValue.int(report.replayed.files),
        "rows_changed": dg.MetadataValue.int(report.rows_changed),
        "decisions": dg.MetadataValue.md(decisions),
        "changed_rows": dg.MetadataValue.md(metadata.markdown(head, rows, right=["row"])),
        "list": dg.MetadataValue.text(report.table),
    }
