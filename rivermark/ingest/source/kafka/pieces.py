"""Ranges of offsets: in rounds read one after the other, and in pieces with a consumer each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final, TypeAlias

import pyarrow as pa
from confluent_kafka import Consumer

from rivermark.ingest.source.kafka.messages import Reading
from rivermark.ingest.source.kafka.position import Partition, Range
from rivermark.ingest.source.typed_rows import record_columns
from rivermark.model.source import Columns, Piece, Records, placed


@dataclass(frozen=True, kw_only=True)
class OffsetsPiece(Piece):
    """Offsets of partitions: a part of one range, or some whole ones, each a split."""

    ranges: tuple[Range, ...]
    reading: Reading

    def read(self) -> Iterator[Records]:
        """The messages, by a consumer that is closed behind them."""
        consumer = self.reading.consumer()
        try:
            yield self.read_by(consumer)
        finally:
            consumer.close()

    def read_by(self, consumer: Consumer) -> Records:
        """The messages, by their offsets."""
        rows = self.reading.rows(consumer, self.ranges)
        columns = {
            "_split": pa.array([n for n, own in enumerate(rows) for _ in own], pa.int32()),
            "_row": pa.array([offset for own in rows for offset, *_ in own], pa.int64()),
            "payload": pa.array([text for own in rows for _, text, _ in own], pa.string()),
        }
        known = columns_of([record for own in rows for *_, record in own], self.reading.wanted)
        return Records(self.splits, pa.table(columns), known)


def columns_of(
    records: Iterable[Mapping[str, Any] | None], wanted: frozenset[str] | None
) -> tuple[Columns, ...]:
    """The columns of messages that were decoded, each run of them for itself."""
    parts: list[tuple[int, tuple[Columns, ...]]] = []
    for _, run in groupby(records, key=lambda record: record is None):
        own = [*run]
        known = [record for record in own if record is not None]
        parts.append((len(own), record_columns(known, wanted) if known else ()))
    return placed(parts)


def pieces_of(
    ranges: Iterable[tuple[str, Range, float]], reading: Reading, most_bytes: int
) -> Iterator[OffsetsPiece]:
    """Pieces of ranges, each with its split's name and the bytes of a message.

    Small ranges share a piece, and so the time in which a broker answers.
    """
    shared: list[tuple[str, Range, int]] = []
    for name, each, message_bytes in ranges:
        step = max(int(most_bytes / message_bytes), 1)
        weight = int((each.end - each.start) * message_bytes)
        if weight > most_bytes:
            for start in range(each.start, each.end, step):
                part = replace(each, start=start, end=min(start + step, each.end))
                yield _piece([(name, part, int((part.end - start) * message_bytes))], reading)
            continue
        if shared and sum(w for _, _, w in shared) + weight > most_bytes:
            yield _piece(shared, reading)
            shared = []
        shared.append((name, each, weight))
    if shared:
        yield _piece(shared, reading)


def _piece(ranges: Sequence[tuple[str, Range, int]], reading: Reading) -> OffsetsPiece:
    return OffsetsPiece(
        splits=tuple(name for name, _, _ in ranges),
        weight=sum(weight for _, _, weight in ranges),
        ranges=tuple(each for _, each, _ in ranges),
        reading=reading,
    )


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
