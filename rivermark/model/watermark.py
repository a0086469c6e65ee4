"""The watermark of an ingest whose rows come from several producers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pyspark.sql.types import StructField, TimestampType

from rivermark.model.bounds import check_above_zero
from rivermark.model.declared import declared

WATERMARK_AFTER: Final = StructField("_watermark_after", TimestampType(), True)
"""The watermark (UTC) that the split of a row left behind it. By it streams that read the table
advance, because the newest event time says nothing of the slower producers."""


@declared("watermark")
@dataclass(frozen=True, kw_only=True)
class PerProducer:
    """A watermark for each producer; that of the stream is their minimum.

    Producers are partitions of a topic, or what `FileSource(producers=...)` names. One that has
    brought no valid row for `idle` is left out of the minimum until it brings one. This is measured
    by the times of the plan (those of files, or of messages), so that a replay decides the same.
    During the first `idle` there is no watermark, so that each producer can be heard. `drift` is
    how far the event time of a producer may run ahead of the slowest one before it is held back: a
    live run then does not read it further until the others have caught up or are idle. None holds
    no producer back.

    `mark` names a timestamp field of the contract by which a row says how far its producer is
    complete: no event at or before that time comes from it any more. The watermark of the producer
    is at least the largest such time, from the next split on; rows without one move it as ever, by
    their event times less the lateness. A row whose mark lies more than the contract's `max_ahead`
    beyond the moment its file landed is quarantined as `mark_ahead`.

    Raises:
        DeclarationError: `idle` or `drift` is not above zero.
    """

    idle: timedelta
    drift: timedelta | None = None
    mark: str | None = None

    def __post_init__(self) -> None:
        check_above_zero("a watermark per producer", idle=self.idle, drift=self.drift)
