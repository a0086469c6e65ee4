"""How far event time had come when the stream was last running."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rivermark.ingest.watermark import Clock
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.statistics import largest
from rivermark.model.stream import Ingest


def recall_clock(lake: Lake, ingest: Ingest, before: int | None = None) -> Clock:
    """The clock that the newest raw commit left (or the newest before batch `before`).

    It lies in the commit's metadata. Where the log no longer shows one, the admitted table's own
    statistics tell the newest event time.
    """
    for commit in CommitLog(lake.path(ingest.raw)).history():
        kept = commit.metadata
        if "clock" in kept and (before is None or int(kept["batch"]) < before):
            return Clock.from_json(kept["clock"])
    newest = largest(lake, ingest.admitted, ingest.contract.event_time)
    return Clock(newest if isinstance(newest, datetime) else None)


def door_watermark(lake: Lake, ingest: Ingest) -> datetime | None:
    """The door's watermark (UTC): whatever comes at or before it from now on is late.

    None before the first admitted row. It is true from the commit on that brought the rows, whoever
    was killed since.
    """
    newest = recall_clock(lake, ingest).newest
    return newest.astimezone(UTC) - (ingest.lateness or timedelta(0)) if newest else None
