"""Restores the progress in event time of the stream's last run."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from rivermark.ingest.watermark import Progress
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.statistics import largest
from rivermark.model.stream import Ingest


def recover_watermark(lake: Lake, ingest: Ingest) -> Progress:
    """The progress that the newest raw commit left.

    It is recorded in the commit's metadata. Where the log no longer shows one, the newest event
    time is that of the admitted table's statistics.
    """
    for commit in CommitLog(lake.path(ingest.raw)).history():
        if "clock" in commit.metadata:
            return Progress.from_json(commit.metadata["clock"])
    newest = largest(lake, ingest.versions, ingest.contract.event_time)
    return Progress(newest if isinstance(newest, datetime) else None)


def progress_before(
    lake: Lake, ingest: Ingest, splits: Collection[str]
) -> tuple[Progress | None, frozenset[str]]:
    """The progress before the raw commit that has rows of these splits, and all splits of it.

    The log may show neither: then they are None and empty. The first commit has none before it.
    """
    beside: frozenset[str] = frozenset()
    for commit in CommitLog(lake.path(ingest.raw)).history():
        kept = commit.metadata
        if beside and "clock" in kept:
            return Progress.from_json(kept["clock"]), beside
        read = frozenset(kept.get("verdicts", ()))
        if splits and read.issuperset(splits):
            beside = read
    return None, beside


def admission_watermark(lake: Lake, ingest: Ingest) -> datetime | None:
    """The watermark of an ingest (UTC): what comes at or before it from now on is late.

    None before the first admitted row. It holds from the commit on that brought the rows, whatever
    process was killed since.
    """
    watermark = recover_watermark(lake, ingest).watermark(ingest.lateness or timedelta(0))
    return watermark.astimezone(UTC) if watermark else None
