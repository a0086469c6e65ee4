"""The newest batches of an ingest, to which scheduled looks keep: a year costs what a day does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from rivermark.backfill.late.merged import PLACE
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.delta import read_rows
from rivermark.lake.snapshot import once_per_snapshot, open_table
from rivermark.lake.sql import query
from rivermark.model.stream import Ingest
from rivermark.model.table import Table
from rivermark.model.watermark import WATERMARK_AFTER
from rivermark.settings import Settings

if TYPE_CHECKING:
    from rivermark.lake.sql import Rows

NEWEST_BATCHES: Final = 500
READ_AT_ONCE: Final = 64 << 20
"""Bytes of data files up to which their rows are read once for all looks at them."""


def batch_before(
    settings: Settings, ingest: Ingest, newest_batches: int | None = NEWEST_BATCHES
) -> int | None:
    """The batch after which so many have their outcome recorded, -1 for all; None before any."""
    lake = settings.lake()
    [recorded] = once_per_snapshot(
        ("newest batch", lake.root, ingest.name),
        lambda: query(
            "SELECT max(ingest_batch) AS newest FROM outcomes WHERE stream = ?",
            {"outcomes": open_table(lake, INGEST_FILES)},
            [ingest.name],
        ),
    )
    if recorded["newest"] is None:
        return None
    return -1 if newest_batches is None else max(-1, int(recorded["newest"]) - newest_batches)


def rows_after(settings: Settings, ingest: Ingest, table: Table, batch: int) -> Rows:
    """The rows of a table of an ingest that came after a batch, with the columns that looks need.

    Where they are many, all rows: the query leaves out those of the batches up to it. Late rows are
    always read, as the side of a join that is held in memory.
    """
    lake = settings.lake()
    rows = open_table(lake, table)
    recent = pc.field("_ingest_batch") > batch
    if table != ingest.late and rows.size(recent) > READ_AT_ONCE:
        return rows
    looked_at = {*PLACE, WATERMARK_AFTER.name, "_late_by_ms", "reasons"}
    looked_at |= {ingest.contract.event_time, ingest.money or ""}
    columns = [name for name in rows.schema.names if name in looked_at]
    return once_per_snapshot(
        ("rows after", lake.path(table), batch),
        lambda: read_rows(rows, columns=columns, filter=recent),
    )
