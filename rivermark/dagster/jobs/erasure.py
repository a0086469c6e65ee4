"""A person's rows erased, as a run: the values stay in a file, as Dagster keeps a run's config."""

from pathlib import Path

import dagster as dg
from pydantic import Field

from rivermark.backfill.erasure.erase import Erasure, erase
from rivermark.backfill.erasure.person import person_of
from rivermark.cli.erase import lines_of
from rivermark.dagster.jobs import metadata
from rivermark.dagster.jobs.backfill import failing_step
from rivermark.dagster.jobs.names import prefixed
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.model.topology import Topology


class EraseConfig(dg.Config):
    """The file that names a person, and the reason."""

    file: str = Field(description="A file on this machine with a COLUMN=VALUE each line.")
    by: str = Field(default="", description="Who asks for it. Empty: the account of the run.")
    because: str = Field(default="", description="The reason, such as a ticket's number.")
    dry_run: bool = Field(default=True, description="Only say what would be erased.")


def erase_job(topology: Topology) -> dg.JobDefinition:
    """One run erases a person's rows from all tables; the groups of these must be paused."""

    @dg.op(
        name=prefixed("erase_rows"),
        description="Takes a person's rows out of all tables and their older versions.",
    )
    def erase_rows(
        context: dg.OpExecutionContext, config: EraseConfig, rivermark_settings: SettingsResource
    ) -> None:
        with failing_step():
            done = erase(
                rivermark_settings.settings(),
                topology,
                person_of(topology, lines_of(Path(config.file))),
                run_id=context.run.run_id,
                dry_run=config.dry_run,
                by=config.by,
                because=config.because,
                on_step=context.log.info,
            )
        for sentence in done.left:
            context.log.warning(f"not reached: {sentence}")
        context.add_output_metadata(of_erasure(done))

    @dg.job(
        executor_def=dg.in_process_executor,
        name=prefixed("erase"),
        description="A person's rows out of every table and its older versions, with a record.",
        tags={"dagster/max_runtime": "14400"},
    )
    def erasing() -> None:
        erase_rows()

    return erasing


def of_erasure(done: Erasure) -> metadata.Metadata:
    """The places with their rows, and what is not reached."""
    rows = [[each.place, f"{each.rows:,}", f"{each.old_files:,}"] for each in done.places]
    head = ["where", "rows", "older files"]
    return {
        metadata.MODE: dg.MetadataValue.text("rehearsal" if done.dry_run else "erase"),
        "erasure": dg.MetadataValue.text(done.id),
        "rows_erased": dg.MetadataValue.int(sum(each.rows for each in done.places)),
        "places": dg.MetadataValue.md(metadata.markdown(head, rows, right=head[1:])),
        "not_reached": dg.MetadataValue.text("\n".join(done.left) or "nothing"),
    }
