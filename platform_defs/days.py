"""Days of a table as Dagster partitions, and how days depend on days of another table."""

from __future__ import annotations

import warnings
from datetime import datetime, time

import dagster as dg

from jobs.names import by_days
from rivermark.model.stream import AnyStream
from rivermark.model.table import Daily, Table


def partitions(days: Daily) -> dg.DailyPartitionsDefinition:
    """The days from the first that the table can hold through today, in the zone of the table."""
    start = datetime.combine(days.start, time())
    return dg.DailyPartitionsDefinition(start, timezone=days.zone, end_offset=1)


def partitions_of(stream: AnyStream, table: Table) -> dg.DailyPartitionsDefinition | None:
    """The partitions of a table's asset; None for a table that is not kept by days."""
    return partitions(table.days) if table.days and by_days(stream, table) else None


def mapping(upstream: Daily, downstream: Daily) -> dg.PartitionMapping:
    """How days of a table depend on days of a table that it reads.

    Dagster refuses windows of two zones in one lineage (seen in 1.13.27), so a local day depends on
    the UTC day of the same date; the few hours beyond are the business of the stream's `margin`.
    """
    if upstream.zone != downstream.zone:
        return dg.IdentityPartitionMapping()
    with warnings.catch_warnings():
        # Marked beta in 1.13, told at each load: tables of one lineage begin on different days.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.TimeWindowPartitionMapping(allow_nonexistent_upstream_partitions=True)
