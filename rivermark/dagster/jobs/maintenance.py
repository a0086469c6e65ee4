"""The nightly maintenance of tables and of Dagster's event log, and the check of retention."""

from datetime import UTC, datetime

import dagster as dg
from pydantic import Field

from rivermark.backfill.maintenance import upkeep
from rivermark.dagster.jobs.check_results import evaluated, unanswered
from rivermark.dagster.jobs.events import evaluation
from rivermark.dagster.jobs.names import prefixed, table_key
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.lake.maintenance.maintain import MaintenanceResult
from rivermark.model.topology import Topology
from rivermark.monitor.checks.check import StreamCheck
from rivermark.monitor.checks.registry import retention_checks
from rivermark.settings import Settings

TAGS = {"dagster/max_runtime": "7200"}
EVENTS_DAYS = 14.0


class UpkeepConfig(dg.Config):
    """Tables to maintain, and the steps."""

    tables: list[str] = Field(default=[], description="Names of tables. Empty: all of them.")
    dry_run: bool = Field(default=False, description="Only say what would be done.")
    target_mb: float = Field(
        default=32,
        gt=0,
        le=2**20,
        description="Files are joined up to so many megabytes; those of half of it are left alone.",
    )
    events_days: float = Field(
        default=EVENTS_DAYS,
        gt=0,
        description="Of reports that are older, Dagster keeps the latest of each table.",
    )


def upkeep_job(topology: Topology) -> dg.JobDefinition:
    """One run maintains every table; it fails where a retained version cannot be read."""
    retained = {c.table.name: c for stream in topology.streams for c in retention_checks(stream)}

    @dg.op(
        name=prefixed("look_after_tables"),
        description="Joins small files, deletes unneeded ones, reads the oldest retained versions.",
    )
    def maintain(
        context: dg.OpExecutionContext, config: UpkeepConfig, rivermark_settings: SettingsResource
    ) -> None:
        settings = rivermark_settings.settings()
        if config.tables and config.events_days != EVENTS_DAYS:
            raise dg.Failure(
                description="events_days goes with all tables: with `tables`, Dagster's log stays "
                "as it is",
                allow_retries=False,
            )
        broken: list[str] = []

        def report(kept: MaintenanceResult) -> None:
            if kept.failed:
                context.log.error(f"{kept.table}: not maintained: {kept.failed}")
                broken.append(f"{kept.table}: not maintained: {kept.failed}")
                return
            for note in kept.notes:
                context.log.warning(f"{kept.table}: {note}")
            check = retained.get(kept.table)
            if check is None:
                context.log.info(f"{kept.table}: {figures(kept)}")
                return
            context.log_event(
                dg.AssetObservation(table_key(kept.table), metadata={**figures(kept)})
            )
            if not config.dry_run:
                broken.extend(evaluate(context, settings, check))

        upkeep(
            settings,
            topology,
            config.tables,
            run_id=context.run.run_id,
            dry_run=config.dry_run,
            target=round(config.target_mb * 1024 * 1024),
            on_done=report,
        )
        if not config.tables:
            # SQLAlchemy with its migrations: nothing that loads the code location needs them.
            from rivermark.dagster.jobs.event_log import prune_events

            pruned = prune_events(
                context.instance, older_than_days=config.events_days, dry_run=config.dry_run
            )
            context.log.info(f"events of streams in Dagster's log: {pruned} deleted")
        if broken:
            raise dg.Failure(description="; ".join(broken), allow_retries=False)

    @dg.job(
        executor_def=dg.in_process_executor,
        name=prefixed("upkeep"),
        description="Fewer files, a short log, every retained version readable: for all tables.",
        tags=TAGS,
    )
    def maintaining() -> None:
        maintain()

    return maintaining


def figures(kept: MaintenanceResult) -> dict[str, int | float | bool]:
    """The metadata of the table: each number becomes a plot."""
    return {
        "dry_run": kept.dry_run,
        "files_before": kept.before.files,
        "files_after": kept.after.files,
        "bytes_before": kept.before.bytes,
        "bytes_after": kept.after.bytes,
        "live_files": kept.after.live_files,
        "log_files_before": kept.before.log_files,
        "log_files_after": kept.after.log_files,
        "joined_files": kept.joined_files,
        "deleted_files": kept.deleted_files,
        "upkeep_seconds": kept.seconds,
    }


def evaluate(context: dg.OpExecutionContext, settings: Settings, check: StreamCheck) -> list[str]:
    """Evaluate version retention and report it at the table; returns what failed.

    What cannot be evaluated has failed, and keeps no other table from being looked after.
    """
    try:
        result = evaluated(check, settings, datetime.now(UTC))
    except Exception as error:
        result = unanswered(dg.AssetCheckKey(table_key(check.table), check.name), error)
    context.log_event(evaluation(result))  # type: ignore[arg-type] # accepted all the same
    return [] if result.passed else [f"{check.table.name}: {result.description}"]
