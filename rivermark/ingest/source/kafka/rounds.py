"""Cutting what waits in several partitions into rounds that are read one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from rivermark.ingest.source.kafka.position import Partition

Offsets: TypeAlias = Mapping[Partition, int]
OffsetsAt: TypeAlias = "Callable[[int], Offsets]"
"""The first offset of each partition with a timestamp (milliseconds) or a later one."""
ENOUGH: Final = 0.5
"""A round that is so full is not filled any further: each try asks the brokers."""


def rounds(
    start: Offsets, end: Offsets, most: int, at: OffsetsAt, now: int
) -> Iterator[tuple[Offsets, int]]:
    """The ends of rounds of at most so many messages, up to `end`, each with its time.

    All messages before that time (milliseconds) are read then; that of the last round is `now`.

    All partitions advance by the same message timestamps, so that none of them runs ahead while
    the others' messages of that time still wait. Where more than a round's messages have one
    timestamp, they are shared out.
    """
    reached, since = dict(start), 0
    while count(reached, end) > most:
        since, cut = _upto(reached, end, most, at, since, now)
        if not count(reached, cut):
            cut = _shares(reached, end, most)
        yield cut, since
        reached = dict(cut)
    if count(reached, end):
        yield dict(end), now


def count(start: Offsets, end: Offsets) -> int:
    """Number of offsets in between."""
    return sum(end[partition] - start[partition] for partition in end)


def _upto(
    start: Offsets, end: Offsets, most: int, at: OffsetsAt, low: int, high: int
) -> tuple[int, dict[Partition, int]]:
    """The latest timestamp, nearly, before which no more than `most` messages lie."""
    best = dict(start)
    while low < high:
        middle = (low + high + 1) // 2
        offsets = at(middle)
        # Without an offset all messages are older.
        cut = {p: min(max(offsets.get(p, end[p]), start[p]), end[p]) for p in end}
        messages = count(start, cut)
        if messages > most:
            high = middle - 1
            continue
        low, best = middle, cut
        if messages >= ENOUGH * most:
            break
    return low, best


def _shares(start: Offsets, end: Offsets, most: int) -> dict[Partition, int]:
    """Of each partition as much as its share of what waits, one message at least of all."""
    total = count(start, end)
    cut = {p: start[p] + (end[p] - start[p]) * most // total for p in end}
    if not count(start, cut):
        fullest = max(end, key=lambda p: end[p] - start[p])
        cut[fullest] += 1
    return cut
