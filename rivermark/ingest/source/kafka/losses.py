"""Records that are gone from a topic before they were read, and their words."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from rivermark.ingest.source.kafka.cluster import Ends, Topic
from rivermark.ingest.source.kafka.position import Range
from rivermark.model.errors import RecordsLost

CUT_OFF: Final = "offsets_cut_off"
WHY: Final = {
    "topic_deleted": "the topic was deleted",
    "topic_made_again": "the topic was deleted and made again",
    "offsets_deleted": (
        "they were deleted before they were read, as by the topic's retention (marks of "
        "transactions and messages of aborted ones count too, though they are no rows)"
    ),
    CUT_OFF: "its log was cut off before them",
}
"""The reasons for which a range is lost."""


def loss_of(wanted: Range, topic: Topic | None, ends: Ends | None) -> Range | None:
    """The lost part of a range; one that is empty goes on to the end of its partition."""
    if wanted.topic_id is None:
        return None
    onwards = wanted.end == wanted.start
    if topic is None:
        return replace(wanted, lost="topic_deleted", again=onwards)
    if topic.id != wanted.topic_id:
        return replace(wanted, lost="topic_made_again", again=onwards)
    if ends is None:
        return None
    if ends.first > wanted.start:
        end = ends.first if onwards else min(ends.first, wanted.end)
        return replace(wanted, end=end, lost="offsets_deleted")
    if ends.behind < wanted.end:
        behind = max(ends.behind, wanted.start) if not onwards else wanted.start
        return replace(
            wanted,
            start=behind,
            lost=CUT_OFF,
            again=onwards,
            resume=ends.behind if onwards else None,
        )
    return None


def lost(losses: Collection[Range]) -> RecordsLost:
    """The error that names what is gone."""
    texts = []
    for each in losses:
        count = each.end - each.start
        which = (
            f"offsets {each.start} to {each.end - 1} ({count:,} of them) are gone"
            if count
            else f"what followed offset {each.start - 1} is gone"
        )
        texts.append(
            f"partition {each.partition} of topic '{each.topic}': {which}: {WHY[each.lost or '']}"
        )
    return RecordsLost("; ".join(texts))
