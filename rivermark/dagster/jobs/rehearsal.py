"""Everything once, end to end, over files that are there: for continuous integration."""

import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from rivermark.cli.demo_scene import scenes
from rivermark.dagster.jobs.check_results import Evaluate, evaluated, every_result
from rivermark.dagster.jobs.names import prefixed
from rivermark.dagster.jobs.run_config import inside
from rivermark.dagster.jobs.suites import suite_result
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.resources.spark import SparkResource
from rivermark.lake.snapshot import row_count
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.monitor.checks.check import StreamCheck
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.quality.suites import suites_of
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.supervision.run import run_bounded
from rivermark.runtime.supervision.state_file import write
from rivermark.settings import Settings

COUNTS = (
    "files",
    "rows_in",
    "rows_out",
    "admitted",
    "late",
    "quarantined",
    "duplicates",
    "batches",
)


class RehearsalConfig(dg.Config):
    """The input of a rehearsal, and the file for its outcome."""

    samples: str = Field(
        default="",
        description=(
            "A folder below the working folder, laid out like the landing root; it is only read. "
            "Empty: the samples that the domains bring."
        ),
    )
    summary: str = Field(
        default="rehearsal.json", description="The JSON file to write, below the platform's home."
    )
    streams: list[str] = Field(default=[], description="Names of streams. Empty: all of them.")


@dataclass
class Outcome:
    """Findings of a rehearsal; it is good when nothing is listed in `failures`.

    `without_input` are streams for which the samples hold nothing: they ran, and proved little.
    """

    run_id: str
    at: datetime
    seconds: float = 0.0
    streams: dict[str, dict[str, Any]] = field(default_factory=dict)
    tables: dict[str, int] = field(default_factory=dict)
    checks: list[dict[str, Any]] = field(default_factory=list)
    without_input: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True if the code may go out."""
        return not self.failures


def rehearsal_job(topology: Topology) -> dg.JobDefinition:
    """The job; its run fails, and the command that launched it, when the outcome is not good."""

    @dg.op(
        name=prefixed("rehearse"),
        description="Runs every stream over sample files in a lake of its own, and checks it.",
    )
    def rehearse(
        context: dg.OpExecutionContext,
        config: RehearsalConfig,
        rivermark_settings: SettingsResource,
        rivermark_spark: SparkResource,
    ) -> None:
        home = rivermark_settings.settings().home
        summary = inside(home, config.summary)
        outcome = Outcome(context.run.run_id, datetime.now(UTC))
        began = time.monotonic()
        try:
            settings = _of_its_own(rivermark_settings, context.run.run_id, config.samples)
            streams = [topology.named(name) for name in config.streams] or [*topology.streams]
            checks = [check for stream in streams for check in checks_of_stream(stream)]
            if not config.samples:
                for scene in scenes().values():
                    scene.land(Path(settings.landing_root))
                    checks += [c for c in scene.checks if c.stream in {s.name for s in streams}]
            summaries = run_bounded(
                rivermark_spark.spark_session,
                settings,
                topology,
                streams,
                run_id=context.run.run_id,
            )
            _tell_streams(outcome, settings, streams, summaries)
            _tell_checks(outcome, context, settings, rivermark_spark, streams, checks)
        except (RivermarkError, dg.Failure) as error:
            outcome.failures.append(str(getattr(error, "description", None) or error))
        outcome.seconds = round(time.monotonic() - began, 1)
        write(summary, {**vars(outcome), "ok": outcome.ok})
        context.log.info(json.dumps({"summary": str(summary), "ok": outcome.ok}))
        if not outcome.ok:
            raise dg.Failure(
                description="; ".join(outcome.failures),
                metadata={"summary": dg.MetadataValue.path(str(summary))},
                allow_retries=False,
            )

    @dg.job(
        executor_def=dg.in_process_executor,
        name=prefixed("rehearsal"),
        description="Everything once, end to end, over sample files, in a lake of its own.",
        tags={"dagster/max_runtime": "3600"},
    )
    def rehearsing() -> None:
        rehearse()

    return rehearsing


def _of_its_own(platform: SettingsResource, run_id: str, samples: str) -> Settings:
    """A lake and a state for this run alone: a rehearsal never touches what is live."""
    return Settings(
        **platform.overrides
        | {
            "home": platform.settings().home / "rehearsals" / run_id,
            "lake_root": "",
            "state_root": None,
            "landing_root": str(inside(Path.cwd(), samples)) if samples else "",
        }
    )


def _tell_streams(
    outcome: Outcome,
    settings: Settings,
    streams: list[AnyStream],
    summaries: dict[str, StreamSummary],
) -> None:
    lake = settings.lake()
    for stream in streams:
        summary = summaries[stream.name]
        outcome.streams[stream.name] = {
            **{name: getattr(summary, name) for name in COUNTS},
            "watermark": summary.watermark,
            "pending": summary.pending,
        }
        if not summary.rows_in:
            outcome.without_input.append(stream.name)
        for table in stream.tables:
            outcome.tables[table.name] = row_count(lake, table)
    if not any(summary.files for summary in summaries.values()):
        outcome.failures.append(
            f"no file lies in {settings.landing_root}: nothing was rehearsed; name a folder of "
            "samples, laid out like the landing root"
        )


def _tell_checks(
    outcome: Outcome,
    context: dg.OpExecutionContext,
    settings: Settings,
    spark: SparkResource,
    streams: list[AnyStream],
    checks: list[StreamCheck],
) -> None:
    to_evaluate: dict[str, Evaluate] = {
        f"{check.table.name} {check.name}": partial(evaluated, check, settings, outcome.at)
        for check in checks
    }
    for stream in streams:
        # No table passes its suite without rows, and these were never to get any.
        if stream.name not in outcome.without_input:
            for published, suite in suites_of(stream):
                to_evaluate[f"{published.name} suite"] = partial(
                    suite_result, spark.spark_session, settings, published, suite
                )
    for result in every_result(to_evaluate):
        assert result.asset_key is not None  # noqa: S101 - every result here names its table
        table = "/".join(result.asset_key.path)
        outcome.checks.append(
            {
                "table": table,
                "check": result.check_name,
                "passed": result.passed,
                "severity": result.severity.value.lower(),
                "told": result.description,
            }
        )
        line = f"{table}: {result.check_name}: {result.description}"
        if result.passed:
            context.log.info(line)
        elif result.severity is dg.AssetCheckSeverity.ERROR:
            outcome.failures.append(line)
        else:
            context.log.warning(line)
