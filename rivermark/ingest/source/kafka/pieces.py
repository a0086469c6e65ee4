"""Ranges of offsets as pieces: each is read by a consumer of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer

from rivermark.ingest.source.kafka.messages import Reading
from rivermark.ingest.source.kafka.position import Range
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
