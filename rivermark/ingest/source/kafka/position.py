"""The position of a stream in a partition, and its form in the plan."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

from rivermark.model.source import Split


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"


@dataclass(frozen=True, kw_only=True)
class Range:
    """Offsets of a partition from `start` up to `end`, which is not among them.

    `topic_id` is the broker's own for the topic; a topic that is deleted and made again has
    another, and `generation` counts them from 0. A `round` numbers the planned batches that were
    cut. Of what is `lost` this is the reason. Where its partition is not what it was, as of a topic
    that was made again, reading goes on in the next generation (`again`): at `resume`, or from the
    first message of what is there then.
    """

    topic: str
    partition: int
    start: int
    end: int
    round: int
    topic_id: str | None
    generation: int = 0
    lost: str | None = None
    again: bool = False
    resume: int | None = None

    @property
    def of(self) -> Partition:
        """The partition."""
        return Partition(self.topic, self.partition)

    @property
    def name(self) -> str:
        """The name of its split; no other one of the stream has it."""
        topic = f"{self.topic}~{self.generation}" if self.generation else self.topic
        lost = "/lost" if self.lost else ""
        return f"{topic}/{self.partition}/{self.start:012d}-{self.end:012d}{lost}"

    @property
    def path(self) -> str:
        """As it is kept in the plan."""
        return json.dumps(
            {k: v for k, v in asdict(self).items() if v is not None and v is not False}
        )

    @classmethod
    def of_path(cls, path: str) -> Range:
        """As `path` wrote it."""
        return cls(**{"topic_id": None, **json.loads(path)})

    @classmethod
    def of_split(cls, split: Split) -> Range:
        """The range of a split."""
        return cls.of_path(split.path)


@dataclass(frozen=True)
class Position:
    """The next offset to be planned of a partition, in which incarnation of its topic.

    Without `topic_id` any topic of the name is taken, and read from its first message.
    """

    generation: int
    offset: int
    topic_id: str | None

    def behind(self, read: Range) -> Position:
        """The position behind a range, unless this one is farther."""
        after = Position(read.generation, read.end, read.topic_id)
        if read.again:
            same = read.resume is not None
            after = Position(read.generation + 1, read.resume or 0, read.topic_id if same else None)
        return max(self, after, key=Position.order)

    def order(self) -> tuple[int, int]:
        """The number that grows as reading goes on."""
        return self.generation, self.offset


class Gaps:
    """Losses that were accepted: planned ranges are read without them."""

    def __init__(self) -> None:
        self._lost: dict[tuple[Partition, int], list[Range]] = {}

    def add(self, lost: Range) -> None:
        """Remember a lost range."""
        self._lost.setdefault((lost.of, lost.generation), []).append(lost)

    def without(self, planned: Range) -> Range:
        """The range that is left of a planned one: its beginning is lost, or its end."""
        start, end = planned.start, planned.end
        gaps = self._lost.get((planned.of, planned.generation), ())
        for gap in sorted(gaps, key=lambda gap: gap.start):
            if gap.start <= start < gap.end:
                start = min(gap.end, end)
            elif gap.start < end <= gap.end:
                end = gap.start
        return replace(planned, start=start, end=end)


def positions(ranges: Iterable[Range]) -> dict[Partition, Position]:
    """The position behind all ranges of each partition."""
    reached: dict[Partition, Position] = {}
    beginning = Position(-1, 0, None)
    for each in ranges:
        reached[each.of] = reached.get(each.of, beginning).behind(each)
    return reached
