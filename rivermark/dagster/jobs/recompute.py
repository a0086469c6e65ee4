"""Recomputing days of a group's tables: what a backfill in Dagster does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

import dagster as dg

from rivermark.backfill.as_of import check_tables
from rivermark.backfill.recompute import Order, replace
from rivermark.dagster.jobs.backfill import failing_step
from rivermark.dagster.jobs.day_results import day_results
from rivermark.dagster.jobs.interruption import end_with_run
from rivermark.dagster.jobs.names import catch_up_job_name, table_key
from rivermark.dagster.jobs.reprocessing_report import of_days
from rivermark.dagster.jobs.run_config import RecomputeConfig
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.resources.spark import SparkResource
from rivermark.model.stream import Stream, inputs_of
from rivermark.model.topology import Topology


@dataclass(frozen=True)
class Recomputing:
    """The tables of a group that are kept by days, and the run that recomputes some of them."""

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

        After an interrupt a table has all of its new rows or none.
        """
        if not (context.has_partition_key or context.has_partition_key_range):
            raise dg.Failure(
                description=(
                    f"these tables are recomputed by days: choose days, or run the job "
                    f"'{catch_up_job_name(self.group)}' to bring them up to date"
                ),
                allow_retries=False,
            )
        end_with_run(context)
        keys = context.partition_key_range
        first, last = date.fromisoformat(keys.start), date.fromisoformat(keys.end)
        selected = context.selected_asset_keys
        chosen = [
            (stream, tables)
            for stream in self.topology.groups()[self.group]
            if isinstance(stream, Stream)
            and (tables := [t for t in stream.tables if table_key(t) in selected])
        ]
        with failing_step():
            check_tables(config.pinned(), [t for stream, _ in chosen for t in inputs_of(stream)])
        for stream, tables in chosen:
            order = Order(
                stream=stream,
                first=first,
                last=last,
                as_of=config.pinned(),
                run_id=context.run.run_id,
                on_step=context.log.info,
            )
            with failing_step():
                done = replace(spark.spark_session, platform.settings(), order)
            lake = platform.settings().lake()
            for table in tables:
                key = table_key(table)
                for day, shown in of_days(done, table, lake).items():
                    context.add_asset_metadata(shown, key, day.isoformat())
                yield dg.MaterializeResult(asset_key=key)
            settings = platform.settings()
            for result in day_results(settings, self.topology, stream, tables, first, last):
                context.log_event(result)
