"""The newest batches of an ingest, to which scheduled looks keep: a year costs what a day does."""

from __future__ import annotations

from typing import Final

from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import query
from rivermark.model.stream import Ingest
from rivermark.settings import Settings

NEWEST_BATCHES: Final = 500


def batch_before(
    settings: Settings, ingest: Ingest, newest_batches: int | None = NEWEST_BATCHES
) -> int | None:
    """The batch after which so many have their outcome recorded, -1 for all; None before any."""
    [recorded] = query(
        "SELECT max(ingest_batch) AS newest FROM outcomes WHERE stream = ?",
        {"outcomes": open_table(settings.lake(), INGEST_FILES)},
        [ingest.name],
    )
    if recorded["newest"] is None:
        return None
    return -1 if newest_batches is None else max(-1, int(recorded["newest"]) - newest_batches)
