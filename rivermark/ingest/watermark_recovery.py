"""How far event time had come when the stream was last running."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rivermark.ingest.watermark import Progress
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.statistics import largest
from rivermark.model.stream import Ingest


def recover_watermark(lake: Lake, ingest: Ingest, before: str | None = None) -> Progress:
    """The progress that the newest raw commit left (or the newest before that of split `before`).

    It is recorded in the commit's metadata. Where the log no longer shows one, the newest event
    time is that of the admitted table's statistics.
    """
    passed = before is None
    for commit in CommitLog(lake.path(ingest.raw)).history():
        kept = commit.metadata
        if "clock" in kept and passed:
            return Progress.from_json(kept["clock"])
        passed = passed or before in kept.get("verdicts", ())
    newest = largest(lake, ingest.versions, ingest.contract.event_time)
    return Progress(newest if isinstance(newest, datetime) else None)


def admission_watermark(lake: Lake, ingest: Ingest) -> datetime | None:
    """The watermark of an ingest (UTC): what comes at or before it from now on is late.

    None before the first admitted row. It holds from the commit on that brought the rows, whatever
    process was killed since.
    """
    watermark = recover_watermark(lake, ingest).watermark(ingest.lateness or timedelta(0))
    return watermark.astimezone(UTC) if watermark else None
