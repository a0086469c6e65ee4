"""Ranges between offsets: one, or several where each is capped."""

from __future__ import annotations

import pytest

from rivermark.ingest.source.payload import json_payload
from rivermark.ingest.source.ranges import RangeReader
from rivermark.model.source import Split


class Numbers(RangeReader):
    """Numbers from 0, at most three a range."""

    def __init__(self, count: int, *, capped: bool = True) -> None:
        super().__init__()
        self.capped = capped
        self.count = count

    def first(self) -> int:
        return 0

    def latest(self, start: int) -> int:
        return min(start + 3, self.count)

    def payloads(self, start: int, end: int) -> list[str]:
        return [json_payload({"n": n}) for n in range(start, end)]

    def size(self, start: int, end: int) -> int:
        return end - start


class Clock(Numbers):
    """Finds more at each call."""

    def latest(self, start: int) -> int:
        return start + 1


def ends(reader: RangeReader, splits: list[Split]) -> list[tuple[str, int, int]]:
    positions = [reader.position(split) for split in splits]
    return [(s.name, p["start"], p["end"]) for s, p in zip(splits, positions, strict=True)]


def test_capped_ranges_reach_up_to_the_last_record() -> None:
    reader = Numbers(7)
    splits = reader.discover().ready

    assert ends(reader, splits) == [
        ("range-000000000000", 0, 3),
        ("range-000000000001", 3, 6),
        ("range-000000000002", 6, 7),
    ]
    assert reader.backlog().splits == 3
    assert reader.backlog().weight == 7


def test_ranges_go_on_behind_those_that_were_planned_of_several() -> None:
    reader = Numbers(7)
    splits = reader.discover().ready
    reader.planned(splits[:2])
    restored = Numbers(8)
    restored.restore(lambda *columns: [tuple(getattr(s, c) for c in columns) for s in splits[:2]])

    assert ends(reader, reader.discover().ready) == [("range-000000000002", 6, 7)]
    assert ends(restored, restored.discover().ready) == [("range-000000000002", 6, 8)]
    restored.planned(restored.discover().ready)
    assert restored.discover().ready == []


@pytest.mark.parametrize("reader", [Numbers(7, capped=False), Clock(7, capped=False)])
def test_a_source_that_caps_nothing_is_asked_once(reader: RangeReader) -> None:
    assert len(reader.discover().ready) == 1
    assert reader.discover().ready[0].name == "range-000000000000"
