"""Positions in topics behind what was accepted as lost."""

from __future__ import annotations

from typing import Any

import pytest

from rivermark.ingest.source.kafka.position import Partition, Position, Range

pytest.importorskip("confluent_kafka", reason="needs the extra: pip install 'rivermark[kafka]'")
from rivermark.runtime.checkpoint.topic_offsets import moved

P = Partition("t", 0)


def gap(start: int, end: int, **values: Any) -> Range:
    kind = {"lost": "offsets_deleted", "topic_id": "a", **values}
    return Range(topic="t", partition=0, start=start, end=end, round=1, **kind)


AGAIN = gap(20, 20, lost="topic_made_again", again=True)


@pytest.mark.parametrize(
    ("offset", "gaps", "expected"),
    [
        (5, [gap(5, 10)], Position(0, 10, "a")),
        (7, [gap(5, 10)], Position(0, 10, "a")),
        (12, [gap(5, 10)], Position(0, 12, "a")),
        # What only this query had not read is not among what was accepted.
        (3, [gap(5, 10)], Position(0, 3, "a")),
        (20, [AGAIN], Position(1, 0, None)),
        # Of the topic that is gone nothing more can be read.
        (3, [gap(5, 10), AGAIN], Position(1, 0, None)),
        (20, [AGAIN, gap(0, 4, generation=1, topic_id="b")], Position(1, 4, "b")),
        (20, [gap(20, 20, lost="offsets_cut_off", again=True, resume=8)], Position(1, 8, "a")),
        (5, [gap(5, 10, lost=None)], Position(0, 5, "a")),
        (5, [gap(5, 10, generation=1)], Position(0, 5, "a")),
    ],
)
def test_a_position_moves_behind_what_the_ingest_has_accepted_and_no_farther(
    offset: int, gaps: list[Range], expected: Position
) -> None:
    assert moved({P: Position(0, offset, "a")}, gaps) == {P: expected}
