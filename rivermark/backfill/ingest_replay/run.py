"""Rebuilding admission from raw, as a rehearsal: replay, compare, list."""

from __future__ import annotations

from datetime import date, timedelta

from pyspark.sql import SparkSession

from rivermark.backfill.ingest_replay.decisions import IngestReplay, changed_decisions
from rivermark.backfill.ingest_replay.replay import replay, with_lateness
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import Ingest
from rivermark.settings import Settings


def replay_ingest(
    spark: SparkSession,
    settings: Settings,
    ingest: Ingest,
    first: date,
    last: date,
    *,
    lateness: timedelta | None = None,
    run_id: str,
) -> IngestReplay:
    """What the door would decide about the rows of these days by the ingest as it is declared now.

    `lateness` takes the place of the declared one. Published tables are only read.
    """
    if last < first:
        raise RivermarkError(f"the range ends ({last}) before it begins ({first})")
    if lateness is not None and ingest.lateness is None:
        raise RivermarkError(f"'{ingest.name}' brings dumps: no row of it can be late")
    lake, changed = settings.lake(), with_lateness(ingest, lateness)
    missing = [t.name for t in ingest.tables if not lake.exists(t)]
    if missing:
        raise RivermarkError(f"table '{missing[0]}' is not there yet: run '{ingest.name}' first")
    replayed = replay(spark, lake, changed, first, last, run_id=run_id)
    return changed_decisions(lake, changed, first, last, replayed, run_id=run_id)
