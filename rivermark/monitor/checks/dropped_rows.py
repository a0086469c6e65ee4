"""Rows that Spark's own operators dropped as late: there must be none after the door."""

from __future__ import annotations

from typing import cast

from rivermark.lake.snapshot import opened
from rivermark.lake.sql import ask
from rivermark.monitor.checks.check import Answer, Offender
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings


def rows_dropped(settings: Settings, stream: str) -> Answer:
    """The rows that batches of the stream dropped behind their watermark, over all its batches.

    The door decides lateness with the delay that its readers use, so that an admitted row can be
    late nowhere. A number above zero means that a reader declares less lateness than its source.
    """
    lake = settings.lake()
    if not lake.exists(STREAM_PROGRESS):
        return Answer(holds=True, sentence="no batch has run yet", numbers={"batches": 0})
    progress = opened(lake, STREAM_PROGRESS)
    found = ask(
        "SELECT count(*), coalesce(sum(dropped_by_watermark), 0) FROM progress WHERE stream = ?",
        {"progress": progress},
        [stream],
    )
    batches, dropped = (int(cast(int, n)) for n in found[0].values())
    worst = ask(
        "SELECT batch_id, run_id, dropped_by_watermark FROM progress"
        " WHERE stream = ? AND dropped_by_watermark > 0"
        " ORDER BY dropped_by_watermark DESC LIMIT 10",
        {"progress": progress},
        [stream],
    )
    return Answer(
        holds=dropped == 0,
        sentence=f"{dropped:,} rows dropped behind the watermark in {batches:,} batches",
        numbers={"rows_dropped": dropped, "batches": batches},
        offenders=tuple(cast(list[Offender], worst)),
    )
