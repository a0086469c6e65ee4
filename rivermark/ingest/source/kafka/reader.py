"""Planning and reading ranges of offsets."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow.compute as pc
from confluent_kafka import Consumer
from pyspark.sql import SparkSession

from rivermark.ingest.source.kafka.cluster import BrokersUnreachable, Cluster, Ends, Topic
from rivermark.ingest.source.kafka.losses import CUT_OFF, loss_of, lost
from rivermark.ingest.source.kafka.messages import Reading
from rivermark.ingest.source.kafka.options import ConsumerGroup, KafkaOptions
from rivermark.ingest.source.kafka.pieces import Offsets, OffsetsPiece, count, pieces_of, rounds
from rivermark.ingest.source.kafka.position import Gaps, Partition, Position, Range, positions
from rivermark.model.errors import RivermarkError
from rivermark.model.source import (
    BATCH_BYTES,
    LOST,
    Backlog,
    Discovery,
    Part,
    Piece,
    PlannedSplit,
    PlanRows,
    Records,
    SourceReader,
    Split,
    Waiting,
)
from rivermark.model.time import millis_of, moment_of_millis
from rivermark.model.time_readers import LAST_MILLIS

LOG: Final = logging.getLogger("rivermark")
MESSAGE_BYTES: Final = 1024
"""Assumed of a message while none of its topic was looked at."""
KNOWN_BYTES: Final = 120
"""Of a payload: what stands in it beside value and key."""


class KafkaReader(SourceReader):
    """Knows how far each partition is planned; asks the brokers for the rest."""

    def __init__(self, name: str, source: KafkaOptions) -> None:
        self._name = name
        self._source = source
        settings = source.client_settings()
        self._cluster = Cluster(settings, source.isolation)
        self._reading = Reading(
            settings, source.isolation, source.format, source.tombstones, source.key_format
        )
        self._positions: dict[Partition, Position] = {}
        self._gaps = Gaps()
        self._round = 0
        self._ahead: list[Split] = []
        """What was cut and is not planned yet."""
        self._held: frozenset[str] = frozenset()
        """The names of partitions that are not read any further."""
        self._names: frozenset[str] = frozenset()
        self._message_bytes: dict[str, float] = {}

    @cached_property
    def _consumer(self) -> Consumer:
        return self._reading.consumer()

    def close(self) -> None:
        """Close the connections."""
        if "_consumer" in self.__dict__:
            self._consumer.close()
            del self.__dict__["_consumer"]

    def expect(self, columns: Collection[str]) -> None:
        """Take these columns of decoded messages for those that matter."""
        self._reading = replace(self._reading, wanted=frozenset(name.lower() for name in columns))

    def restore(self, plan: PlanRows) -> None:
        """Continue behind the ranges of the plan."""
        self._continue(Range.of_path(path) for (path,) in plan("path"))

    def planned(self, splits: Sequence[Split]) -> None:
        """Continue behind these ranges."""
        self._continue(map(Range.of_split, splits))
        names = {split.name for split in splits}
        self._ahead = [split for split in self._ahead if split.name not in names]

    def _continue(self, ranges: Iterable[Range]) -> None:
        ranges = [*ranges]
        for partition, position in positions(ranges).items():
            before = self._positions.get(partition, position)
            self._positions[partition] = max(before, position, key=Position.order)
        for each in ranges:
            self._round = max(self._round, each.round + 1)
            if each.lost:
                self._gaps.add(each)
                self._ahead = []

    def hold_back(self, producers: Collection[str]) -> None:
        """Cut no ranges of these partitions; what was cut and not planned is cut again."""
        if self._held != frozenset(producers):
            self._held, self._ahead = frozenset(producers), []

    def discover(self, *, full: bool = True) -> Discovery:
        """Cut what is readable into rounds; brokers that do not answer are waited for."""
        try:
            return self._discover(full=full)
        except BrokersUnreachable as error:
            return Discovery(waiting=[self._waiting(self._name, str(error))])

    def _discover(self, *, full: bool) -> Discovery:
        topics, ends = self._state(full=full)
        losses = self._losses(self._open_ends(), topics, ends)
        if losses:
            raise lost(losses)
        absent = [
            self._waiting(name, "no topic of this name is there yet")
            for name in self._source.names
            if name not in topics
        ]
        if self._source.pattern and not topics:
            absent = [self._waiting(self._source.pattern, "no topic is named so yet")]
        if not self._ahead:
            self._ahead = [*self._cut(topics, ends)]
        return Discovery([*self._ahead], absent)

    def _waiting(self, name: str, reason: str) -> Waiting:
        return Waiting(name, name, reason, 0, datetime.now(UTC))

    def _state(self, *, full: bool) -> tuple[dict[str, Topic], dict[Partition, Ends]]:
        """The topics that are read, as they are, and the ends of their partitions."""
        pattern = self._source.pattern
        if pattern and (full or not self._names):
            self._names = self._cluster.matching(pattern)
        planned = {partition.topic for partition in self._positions}
        topics = self._cluster.topics({*self._source.names, *self._names, *planned})
        return topics, self._cluster.ends_of(topics.values())

    def _open_ends(self) -> list[Range]:
        """The position of each partition, as a range without a known end."""
        return [
            Range(
                topic=partition.topic,
                partition=partition.number,
                start=position.offset,
                end=position.offset,
                round=self._round,
                topic_id=position.topic_id,
                generation=position.generation,
            )
            for partition, position in self._positions.items()
        ]

    def _losses(
        self, wanted: Iterable[Range], topics: Mapping[str, Topic], ends: Mapping[Partition, Ends]
    ) -> list[Range]:
        wanted = [*wanted]

        def losses(ends: Mapping[Partition, Ends]) -> list[Range]:
            each = (loss_of(w, topics.get(w.topic), ends.get(w.of)) for w in wanted)
            return [replace(lost, round=self._round) for lost in each if lost is not None]

        lost = losses(ends)
        if cut_off := {each.of for each in lost if each.lost == CUT_OFF}:
            # What was read uncommitted may stand behind a transaction that is still open.
            lost = losses({**ends, **self._cluster.log_ends(cut_off)})
        return lost

    def _cut(self, topics: Mapping[str, Topic], ends: Mapping[Partition, Ends]) -> Iterator[Split]:
        """Unplanned offsets, in rounds; a partition without a position has a range in the first.

        That may be empty: it says where reading begins, whatever is deleted until it is read.
        """
        start = self._starts(ends)
        new = {p for p in start if p not in self._positions}
        if self._positions:
            for partition in new:
                LOG.info("partition %s is new: read from offset %d", partition, start[partition])
        end = {
            p: start[p] if str(p) in self._held else max(ends[p].behind, start[p]) for p in start
        }
        self._measure({p: start[p] for p in start if end[p] > start[p]})
        now, number = datetime.now(UTC), self._round
        millis = millis_of(now)

        def at(moment: int) -> dict[Partition, int]:
            return self._cluster.offsets_at(start.keys(), moment)

        cuts = [*rounds(start, end, self._most(start, end), at, millis)]
        for cut, moment in cuts or ([(start, millis)] if new else []):
            came = moment_of_millis(moment)
            for partition in sorted(cut):
                if cut[partition] > start[partition] or partition in new:
                    position = self._positions.get(partition, Position(0, 0, None))
                    read = Range(
                        topic=partition.topic,
                        partition=partition.number,
                        start=start[partition],
                        end=cut[partition],
                        round=number,
                        topic_id=topics[partition.topic].id,
                        generation=position.generation,
                    )
                    yield self._split(read, came)
            start, new, number = dict(cut), set(), number + 1

    def _most(self, start: Offsets, end: Offsets) -> int:
        """Messages of a round: as many as were declared, or have the bytes of a planned batch."""
        if self._source.max_messages is not None:
            return self._source.max_messages
        size = self._size({p: end[p] - start[p] for p in end})
        return max((self.limit.weight or BATCH_BYTES) * count(start, end) // max(size, 1), 1)

    def _size(self, messages: Offsets) -> int:
        """Bytes of so many messages of partitions, approximately."""
        sizes = (n * self._message_bytes.get(p.topic, MESSAGE_BYTES) for p, n in messages.items())
        return int(sum(sizes))

    def _starts(self, ends: Mapping[Partition, Ends]) -> dict[Partition, int]:
        """The offset from which each partition is read next."""
        known = {p: q.offset for p, q in self._positions.items() if q.topic_id is not None}
        first = {} if self._positions else self._first_starts(ends)
        return {p: known.get(p, first.get(p, ends[p].first)) for p in ends}

    def _first_starts(self, ends: Mapping[Partition, Ends]) -> dict[Partition, int]:
        """The offsets at which the first start of the stream begins."""
        start = self._source.start
        if start == "earliest":
            return {}
        if start == "latest":
            return {p: ends[p].behind for p in ends}
        if isinstance(start, datetime):
            at = self._cluster.offsets_at(ends.keys(), millis_of(start))
            return {p: min(at.get(p, ends[p].behind), ends[p].behind) for p in ends}
        if isinstance(start, ConsumerGroup):
            offsets = self._committed(start.name, ends)
        else:
            offsets = {Partition(t, n): o for t, held in start.items() for n, o in held.items()}
        for partition, offset in offsets.items():
            held = ends.get(partition)
            if held is None or not held.first <= offset <= held.behind:
                holds = f"it holds {held.first} to {held.behind - 1}" if held else "it is not there"
                raise RivermarkError(
                    f"start names offset {offset} of partition {partition.number} of topic "
                    f"'{partition.topic}': {holds}"
                )
        return offsets

    def _committed(self, group: str, partitions: Collection[Partition]) -> dict[Partition, int]:
        """The offsets of a consumer group; refuses one that has none, which may be misspelled."""
        offsets = self._cluster.committed(group, partitions)
        if partitions and not offsets:
            raise RivermarkError(
                f"start names the consumer group '{group}', which has committed no offset of "
                f"{', '.join(sorted({p.topic for p in partitions}))}; name another group, or "
                "start at 'earliest'"
            )
        return offsets

    def _split(self, read: Range, came: datetime) -> Split:
        each = self._message_bytes.get(read.topic, MESSAGE_BYTES)
        return Split(
            name=read.name,
            path=read.path,
            size=max(int((read.end - read.start) * each), 1),
            modified_at=came,
            format="json",
            status=LOST if read.lost else "ready",
            reason=read.lost,
        )

    def _measure(self, starts: Mapping[Partition, int]) -> None:
        """Look at the first messages of topics that were not looked at: how large they are."""
        unknown = {p: o for p, o in starts.items() if p.topic not in self._message_bytes}
        if unknown:
            self._peek(unknown)

    def _peek(self, starts: Mapping[Partition, int]) -> dict[Partition, datetime]:
        """The timestamp of the first message of each partition that is read in a moment."""
        moments: dict[Partition, datetime] = {}
        sizes: dict[str, list[int]] = {}
        for message in self._reading.first(starts):
            topic = message.topic() or ""
            _, millis = message.timestamp()
            partition = Partition(topic, message.partition() or 0)
            moments.setdefault(partition, moment_of(millis))
            size = len(message.value() or b"") + len(message.key() or b"") + KNOWN_BYTES
            sizes.setdefault(topic, []).append(size)
        for topic, each in sizes.items():
            self._message_bytes[topic] = sum(each) / len(each)
        return moments

    def batches(self, ready: Sequence[Split]) -> Iterable[list[Split]]:
        """A round is a planned batch."""
        for _, group in groupby(ready, key=lambda split: Range.of_split(split).round):
            yield [*group]

    def pieces(
        self, spark: SparkSession, splits: Sequence[PlannedSplit], most_bytes: int
    ) -> Sequence[Piece]:
        """Cut the ranges by their offsets."""
        ranges = [self._gaps.without(Range.of_split(split)) for split in splits]
        topics = self._cluster.topics({each.topic for each in ranges})
        # A topic that was made again may lack partitions; then nothing of it is asked for.
        ends = self._cluster.ends({r.of for r in ranges if r.topic in topics})
        losses = self._losses((r for r in ranges if r.end > r.start), topics, ends)
        if losses:
            raise lost(losses)
        for each in ranges:
            if each.end > each.start and ends[each.of].behind < each.end:
                raise RivermarkError(
                    f"partition {each.partition} of topic '{each.topic}': offsets up to "
                    f"{each.end - 1} were planned, and a transaction that is open holds back what "
                    f"follows {ends[each.of].behind - 1}: it has to end before they are read"
                )
        sizes = [self._message_bytes.get(each.topic, MESSAGE_BYTES) for each in ranges]
        names = [split.name for split in splits]
        named = zip(names, ranges, sizes, strict=True)
        return [*pieces_of(named, self._reading, most_bytes)]

    def read(self, piece: Piece) -> Iterator[Records]:
        """Read a piece by the reader's own consumer, and learn how large messages are."""
        assert isinstance(piece, OffsetsPiece)  # noqa: S101 - no other ones are cut here
        records = piece.read_by(self._consumer)
        places = records.rows["_split"].to_numpy()
        lengths = pc.binary_length(records.rows["payload"]).to_numpy()
        counts = np.bincount(places, minlength=len(piece.ranges))
        sizes = np.bincount(places, lengths, minlength=len(piece.ranges))
        for each, messages, size in zip(piece.ranges, counts, sizes, strict=True):
            if messages:
                self._message_bytes[each.topic] = float(size / messages)
        yield records

    def backlog(self) -> Backlog:
        """The unplanned part of all partitions; looks at the first message of each."""
        _, ends = self._state(full=True)
        waiting, moments = self._waiting_from(self._starts(ends), ends)
        ranges = sum(1 for messages in waiting.values() if messages)
        oldest = min(moments.values(), default=datetime.now(UTC)) if ranges else None
        return Backlog(ranges, self._size(waiting), oldest)

    def parts(self, unread: Sequence[PlannedSplit]) -> Sequence[Part]:
        """Each partition, with its messages that are in no table yet."""
        _, ends = self._state(full=True)
        starts = self._starts(ends)
        for each in (self._gaps.without(Range.of_split(s)) for s in unread if s.status == "ready"):
            position = self._positions.get(each.of)
            if each.of in starts and position and position.generation == each.generation:
                starts[each.of] = min(starts[each.of], each.start)
        waiting, moments = self._waiting_from(starts, ends)
        newest = self._cluster.newest(ends.keys())
        held = self._behind_open(starts, ends)
        opened = self._peek_open({p: ends[p].behind for p in held})
        return [
            Part(
                name=str(p),
                records=waiting[p] + held.get(p, 0),
                newest=moment_of(newest[p]) if p in newest else None,
                oldest=min((m[p] for m in (moments, opened) if p in m), default=None),
                held=held.get(p, 0),
                held_at=ends[p].behind if p in held else None,
            )
            for p in sorted(waiting)
        ]

    def _behind_open(
        self, starts: Mapping[Partition, int], ends: Mapping[Partition, Ends]
    ) -> dict[Partition, int]:
        """Number of offsets of each partition that stand behind an open transaction.

        Marks of transactions and aborted messages are among them: which they are is known once
        the transaction has ended.
        """
        logs = self._cluster.log_ends(starts.keys())
        counts = {p: logs[p].behind - ends[p].behind for p in starts.keys() & logs.keys()}
        return {p: held for p, held in counts.items() if held > 0}

    def _peek_open(self, starts: Mapping[Partition, int]) -> dict[Partition, datetime]:
        """The timestamp of the first message that an open transaction holds back."""
        if not starts:
            return {}
        moments: dict[Partition, datetime] = {}
        for message in replace(self._reading, isolation="read_uncommitted").first(starts):
            partition = Partition(message.topic() or "", message.partition() or 0)
            moments.setdefault(partition, moment_of(message.timestamp()[1]))
        return moments

    def _waiting_from(
        self, starts: Mapping[Partition, int], ends: Mapping[Partition, Ends]
    ) -> tuple[dict[Partition, int], dict[Partition, datetime]]:
        """Number of messages of each partition from there on, and the first one's timestamp."""
        waiting = {p: max(ends[p].behind - start, 0) for p, start in starts.items()}
        firsts = {p: max(starts[p], ends[p].first) for p, messages in waiting.items() if messages}
        return waiting, self._peek(firsts) if firsts else {}

    def lost(self, unread: Sequence[PlannedSplit]) -> Sequence[Split]:
        """Ranges that are gone: of what was planned, and of what follows."""
        planned = [self._gaps.without(Range.of_split(s)) for s in unread if s.status == "ready"]
        topics, ends = self._state(full=True)
        wanted = [*(r for r in planned if r.end > r.start), *self._open_ends()]
        now = datetime.now(UTC)
        return [self._split(each, now) for each in self._losses(wanted, topics, ends)]


def moment_of(millis: int) -> datetime:
    """A message's timestamp; the first or last moment for one that producers meant otherwise."""
    return moment_of_millis(min(max(millis, 0), LAST_MILLIS))
