"""Admission repeated from raw: rehearsed, put in place, or undone; the report is metadata."""

import enum

import dagster as dg
from pydantic import Field

from rivermark.backfill.difference import KINDS
from rivermark.backfill.downstream import DownstreamResult
from rivermark.backfill.ingest_replay.run import IngestReplay, an_admitting, replay_ingest
from rivermark.backfill.ingest_replay.undo import undo_replacement
from rivermark.backfill.result import Reprocessing
from rivermark.dagster.jobs import metadata
from rivermark.dagster.jobs.backfill import backfill_context, failing_step
from rivermark.dagster.jobs.names import prefixed, table_key
from rivermark.dagster.jobs.run_config import DayText, optional_day
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.resources.spark import SparkResource
from rivermark.model.errors import WrongUse
from rivermark.model.topology import Topology

SHOWN = 50


class Way(enum.Enum):
    """The end of the rows that are decided again."""

    rehearse = "rehearse"
    replace = "replace"
    undo = "undo"


class ReplayIngestConfig(dg.Config):
    """Whose rows are decided again, of which days, and what becomes of them."""

    stream: str = Field(description="The name of an ingest, such as taxi/fare_events.")
    first: DayText = Field(
        default="", description="The first day, like 2020-01-01; an undo knows its rows."
    )
    last: DayText = Field(default="", description="The last day. Empty: the first one.")
    lateness_seconds: float | None = Field(
        default=None, gt=0, description="How late rows may be instead. Empty: as declared."
    )
    way: Way = Field(
        default=Way.rehearse,
        description="rehearse only compares; replace publishes; undo puts rows back.",
    )
    undo: str = Field(default="", description="For an undo: the id of the replacement.")


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
        backfill = backfill_context(context, topology, rivermark_settings, rivermark_spark)
        with failing_step():
            ingest = an_admitting(topology.named(config.stream))
            if config.way is Way.undo:
                shown = of_done(*undo_replacement(backfill, ingest, config.undo))
            else:
                first = optional_day(config.first)
                if first is None:
                    raise WrongUse("no day was given: give the first one, like 2020-01-01")
                report = replay_ingest(
                    backfill,
                    ingest.name,
                    first,
                    optional_day(config.last) or first,
                    lateness_seconds=config.lateness_seconds,
                    replacing=config.way is Way.replace,
                )
                shown = of_report(report)
        context.log_event(dg.AssetObservation(table_key(ingest.tables[0]), metadata=shown))
        context.add_output_metadata(shown)

    @dg.job(
        executor_def=dg.in_process_executor,
        name=prefixed("replay_ingest"),
        description="Rows that came before, decided as today: rehearsed, put in place, undone.",
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
        metadata.MODE: dg.MetadataValue.text("replay"),
        "rows_read": dg.MetadataValue.int(report.replayed.rows),
        "files_read": dg.MetadataValue.int(report.replayed.files),
        "rows_changed": dg.MetadataValue.int(report.rows_changed),
        "decisions": dg.MetadataValue.md(decisions),
        "changed_rows": dg.MetadataValue.md(metadata.markdown(head, rows, right=["row"])),
        "list": dg.MetadataValue.text(report.table),
        **(of_done(report.done, report.downstream) if report.done else {}),
    }


def of_done(done: Reprocessing | None, downstream: DownstreamResult) -> metadata.Metadata:
    """The id and the tables of a replacement or an undo, and what followed downstream."""
    tables = done.tables.items() if done else ()
    rows = [
        [name, *(f"{n:,}" for n in outcome.difference.counts().values())]
        for name, outcome in tables
        if outcome.version_after is not None
    ]
    days = {n: len(days) for n, days in downstream.pending.items()}
    return {
        metadata.MODE: dg.MetadataValue.text(done.kind if done else "replay"),
        "reprocessing": dg.MetadataValue.text(done.id if done else ""),
        "tables": dg.MetadataValue.md(metadata.markdown(["table", *KINDS], rows, right=KINDS)),
        "days_recomputed": dg.MetadataValue.int(downstream.days_changed),
        "days_pending": dg.MetadataValue.json(days),
    }
