"""Computing days of a group's tables again: what a backfill in Dagster does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

import dagster as dg

from jobs import metadata
from jobs.names import catch_up_job_name, table_key
from jobs.run_config import RecomputeConfig
from resources.settings import SettingsResource
from resources.spark import SparkResource
from rivermark.errors import RivermarkError
from rivermark.runtime.recompute import RecomputeReport, recompute
from rivermark.stream import Stream
from rivermark.topology import Topology


@dataclass(frozen=True)
class Recomputing:
    """The tables of a group that are kept by days, and the run that computes some days again."""

    topology: Topology
    group: str

    def run(
        self,
        context: dg.AssetExecutionContext,
        config: RecomputeConfig,
        platform: SettingsResource,
        spark: SparkResource,
    ) -> Iterator[dg.MaterializeResult[None]]:
        """Recompute the run's range of days, stream after stream.

        An interrupt breaks the computing off; a table then has all of its new rows or none.
        """
        if not (context.has_partition_key or context.has_partition_key_range):
            raise dg.Failure(
                description=(
                    f"these tables are computed again by days: choose days, or run the job "
                    f"'{catch_up_job_name(self.group)}' to bring them up to date"
                ),
                allow_retries=False,
            )
        keys = context.partition_key_range
        first, last = date.fromisoformat(keys.start), date.fromisoformat(keys.end)
        selected = context.selected_asset_keys
        for stream in self.topology.groups()[self.group]:
            tables = [t for t in stream.tables if table_key(t) in selected]
            if not tables or not isinstance(stream, Stream):
                continue
            try:
                report = recompute(
                    spark.spark_session,
                    platform.settings(),
                    stream,
                    first,
                    last,
                    as_of=config.pinned(),
                    run_id=context.run.run_id,
                )
            except RivermarkError as error:
                raise dg.Failure(
                    description=str(error),
                    metadata={"error": type(error).__name__},
                    allow_retries=False,
                ) from error
            for table in tables:
                yield dg.MaterializeResult(
                    asset_key=table_key(table), metadata=_told(report, table.name)
                )


def _told(report: RecomputeReport, table: str) -> metadata.Metadata:
    """What changed, and from which versions to which."""
    before, after = report.rows_before[table], report.rows_after[table]
    inputs = ", ".join(f"{name} at {version}" for name, version in report.input_versions.items())
    return {
        metadata.MODE: dg.MetadataValue.text("recompute"),
        metadata.ROW_COUNT: dg.MetadataValue.int(after),
        "rows_before": dg.MetadataValue.int(before),
        "rows_after": dg.MetadataValue.int(after),
        "rows_out": dg.MetadataValue.int(report.rows_written),
        "version": dg.MetadataValue.int(report.output_versions[table]),
        "read": dg.MetadataValue.text(inputs),
    }
