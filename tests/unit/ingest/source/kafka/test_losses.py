"""What the words of a loss claim, and what they cannot know."""

from __future__ import annotations

from rivermark.ingest.source.kafka.cluster import Ends, Topic
from rivermark.ingest.source.kafka.losses import loss_of, lost
from rivermark.ingest.source.kafka.position import Partition, Range


def test_m026_offsets_that_are_gone_may_have_been_no_rows() -> None:
    wanted = Range(topic="t", partition=0, start=5, end=5, round=1, topic_id="a")
    gone = loss_of(
        wanted, Topic(id="a", partitions=(Partition("t", 0),)), Ends(first=26, behind=30)
    )

    assert gone is not None
    said = str(lost([gone]))
    assert "partition 0 of topic 't': offsets 5 to 25 (21 of them) are gone" in said
    assert "messages of aborted ones count too, though they are no rows" in said
