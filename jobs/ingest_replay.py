"""Admission decided again from raw, as a rehearsal whose report is the run's metadata."""

from datetime import date, timedelta

import dagster as dg
from pydantic import Field

from jobs import metadata
from jobs.names import table_key
from jobs.run_config import DayText
from resources.settings import SettingsResource
from resources.spark import SparkResource
from rivermark.backfill.ingest_replay.decisions import IngestReplay
from rivermark.backfill.ingest_replay.run import replay_ingest
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import Ingest
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
    """Replays the door over raw and lists the decisions that change; published tables stay."""

    @dg.op(
        name="decide_again",
        description="Replays the door over raw rows, by the rules as they are declared now.",
    )
    def decide_again(
        context: dg.OpExecutionContext,
        config: ReplayIngestConfig,
        platform: SettingsResource,
        spark: SparkResource,
    ) -> None:
        seconds = config.lateness_seconds
        try:
            ingest = topology.named(config.stream)
            if not isinstance(ingest, Ingest):
                raise RivermarkError(f"'{config.stream}' has no door: it reads tables")
            report = replay_ingest(
                spark.spark_session,
                platform.settings(),
                ingest,
                date.fromisoformat(config.first),
                date.fromisoformat(config.last or config.first),
                lateness=None if seconds is None else timedelta(milliseconds=round(seconds * 1000)),
                run_id=context.run.run_id,
            )
        except RivermarkError as error:
            raise dg.Failure(description=str(error), allow_retries=False) from error
        told = told_of(report)
        context.log_event(dg.AssetObservation(table_key(ingest.admitted), metadata=told))
        context.add_output_metadata(told)

    @dg.job(
        name="readmit",
        description="What the door would decide today about rows that came before.",
        tags={"dagster/max_runtime": "14400"},
    )
    def readmitting() -> None:
        decide_again()

    return readmitting


def told_of(report: IngestReplay) -> metadata.Metadata:
    """The report: rows by their way, and the first of them by their place."""
    turns = ["| before | after | rows | money |", "|---|---|---:|---:|"]
    for turn in report.turns:
        money = "" if turn.money is None else f"{turn.money:,.2f}"
        turns.append(f"| {turn.before} | {turn.after} | {turn.rows:,} | {money} |")
    rows = ["| file | row | event time | before | after |", "|---|---:|---|---|---|"]
    for row in report.sample[:SHOWN]:
        rows.append("| {file} | {row} | {event_time} | {before} | {after} |".format(**row))
    return {
        metadata.MODE: dg.MetadataValue.text("readmit"),
        "rows_read": dg.MetadataValue.int(report.replayed.rows),
        "files_read": dg.MetadataValue.int(report.replayed.files),
        "rows_changed": dg.MetadataValue.int(report.rows_changed),
        "decisions": dg.MetadataValue.md("\n".join(turns)),
        "changed_rows": dg.MetadataValue.md("\n".join(rows)),
        "list": dg.MetadataValue.text(report.table),
    }
