"""The position of a query in real time in its topics, kept with the position of their ingest.

Spark notes offsets by a topic's name alone: in a topic that was made again it would go on in the
middle, and at a gap that the ingest has passed it would stop for good. So the brokers' ids of the
topics lie beside Spark's offsets (`topics.json`). They are compared before each start and while the
query runs; what was accepted as lost is passed by one more batch, which is finished and empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from rivermark.ingest.plan import plan_table
from rivermark.ingest.source.kafka.cluster import BrokersUnreachable, Cluster
from rivermark.ingest.source.kafka.losses import loss_of, lost
from rivermark.ingest.source.kafka.position import Partition, Position, Range, positions
from rivermark.ingest.source.kafka.source import KafkaSource
from rivermark.lake.delta import dataset_of, delta_table, read_rows
from rivermark.lake.filesystem import filesystem, put_file, write_file
from rivermark.lake.lake import Lake
from rivermark.model.errors import RecordsLost
from rivermark.model.ingest import Ingest
from rivermark.runtime.checkpoint.generation import newest_entry

TOPICS: Final = "topics.json"
OFFSETS: Final = "offsets"
COMMITS: Final = "commits"
Own = Mapping[Partition, Position]


class TopicOffsets:
    """Offsets behind the last batch that one query in real time has finished."""

    def __init__(self, lake: Lake, stream: str, ingest: Ingest, checkpoint: str) -> None:
        self._lake, self._stream, self._ingest = lake, stream, ingest
        source = cast(KafkaSource, ingest.source)
        self._cluster = Cluster(source.client_settings(), source.isolation)
        self._names, self._pattern = source.names, source.pattern
        self._checkpoint = checkpoint
        self._store, self._folder = filesystem(checkpoint)

    def check(self) -> None:
        """Pass what the ingest has accepted as lost; call it before each start.

        Raises:
            RecordsLost: something else is gone; with the command that goes on without it.
            BrokersUnreachable: no broker answers.
        """
        before, now = self._positions()
        if gone := self._losses(now):
            raise self._error(gone)
        self._go_on(before, now)

    def watch(self) -> None:
        """Refuse to go on in a topic that is not the one of the start; brokers may be away.

        Raises:
            RecordsLost: it was deleted, or made again meanwhile.
        """
        ids = self._ids()
        try:
            topics = self._cluster.topics(ids)
        except BrokersUnreachable:
            return
        own = {
            Partition(topic, 0): Position(number, 0, topic_id)
            for topic, (number, topic_id) in ids.items()
        }
        losses = (loss_of(_from(p, q), topics.get(p.topic), None) for p, q in own.items())
        if gone := [each for each in losses if each is not None]:
            raise self._error(gone)

    def lost(self) -> Sequence[Range]:
        """Ranges that are gone, beyond those that the ingest has accepted."""
        _, now = self._positions()
        return self._losses(now)

    def accept_loss(self) -> Sequence[Range]:
        """Go on behind what is gone; returns it.

        Raises:
            RecordsLost: a topic is not what it was, and the ingest has not accepted that yet.
        """
        before, now = self._positions()
        gone = self._losses(now)
        if any(each.again for each in gone):
            raise self._error(gone)
        self._go_on(before, moved(now, gone))
        return gone

    def _error(self, gone: Sequence[Range]) -> RecordsLost:
        who = self._ingest.name if any(each.again for each in gone) else self._stream
        return RecordsLost(
            f"{lost(gone)}. Alerts of them were not sent; nothing was skipped. To go on behind the "
            f"gap: rivermark accept-loss {who}"
        )

    def _positions(self) -> tuple[Own, Own]:
        """The position as it was noted, and behind what the ingest has accepted as lost."""
        plan = self._plan()
        own = self._own(plan)
        return own, moved(own, plan)

    def _own(self, plan: Sequence[Range]) -> dict[Partition, Position]:
        """The position behind the last finished batch; nothing before the first one."""
        done = newest_entry(self._store, f"{self._folder}/{COMMITS}")
        if done is None:
            return {}
        ids, planned = self._ids(), positions(plan)
        own = {}
        for topic, offsets in _offsets_of(self._text(f"{OFFSETS}/{done}"))[1].items():
            for number, offset in offsets.items():
                partition = Partition(topic, int(number))
                # An earlier release noted no ids: then they are those of the ingest.
                first = planned.get(partition, Position(0, 0, None))
                generation, topic_id = ids.get(topic, (first.generation, first.topic_id))
                own[partition] = Position(generation, offset, topic_id)
        return own

    def _plan(self) -> Sequence[Range]:
        table = plan_table(self._ingest)
        if not self._lake.exists(table):
            return []
        rows = read_rows(dataset_of(delta_table(self._lake.path(table))), columns=["path"])
        return [*map(Range.of_path, rows["path"].to_pylist())]

    def _losses(self, own: Own) -> list[Range]:
        topics = self._cluster.topics({p.topic for p in own})
        ends = self._cluster.ends_of(topics.values())
        losses = (loss_of(_from(p, q), topics.get(p.topic), ends.get(p)) for p, q in own.items())
        return [each for each in losses if each is not None]

    def _go_on(self, before: Own, now: Own) -> None:
        """Note the topics' ids, and the position where it has moved."""
        names = self._cluster.matching(self._pattern) if self._pattern else self._names
        topics = self._cluster.topics({*names, *(p.topic for p in now)})
        generations = {p.topic: q.generation for p, q in now.items()}
        if before != now:
            ends = self._cluster.ends_of(topics.values())
            # A topic that was made again is read from its first message.
            first = {p: ends[p].first for p in now if p in ends}
            offsets = {
                p: first.get(p, 0) if q.topic_id is None else q.offset for p, q in now.items()
            }
            self._write(offsets)
        ids = {name: [generations.get(name, 0), topic.id] for name, topic in topics.items()}
        write_file(f"{self._checkpoint}/{TOPICS}", json.dumps(ids).encode())

    def _write(self, offsets: Mapping[Partition, int]) -> None:
        """Finish one more batch, which has read up to here and nothing."""
        done = newest_entry(self._store, f"{self._folder}/{COMMITS}")
        before, _ = _offsets_of(self._text(f"{OFFSETS}/{done}"))
        held: dict[str, dict[str, int]] = {}
        for partition, offset in offsets.items():
            held.setdefault(partition.topic, {})[str(partition.number)] = offset
        entry, commit = f"{before}{json.dumps(held)}", self._text(f"{COMMITS}/{done}")
        # Spark would take up the batch that it had planned, of messages that are gone.
        for log, text in ((OFFSETS, entry), (COMMITS, commit)):
            path = f"{self._folder}/{log}/{(done or 0) + 1}"
            put_file(self._store, path, text.encode(), drafts=self._folder)

    def _ids(self) -> dict[str, tuple[int, str]]:
        try:
            noted = json.loads(self._text(TOPICS))
        except (FileNotFoundError, ValueError):
            return {}
        return {topic: (generation, topic_id) for topic, (generation, topic_id) in noted.items()}

    def _text(self, name: str) -> str:
        with self._store.open_input_stream(f"{self._folder}/{name}") as file:
            return bytes(file.read()).decode()


def moved(own: Own, plan: Iterable[Range]) -> dict[Partition, Position]:
    """Positions behind the ranges that were accepted as lost."""
    gaps = sorted((e for e in plan if e.lost), key=lambda each: (each.generation, each.start))
    now = dict(own)
    for gap in gaps:
        position = now.get(gap.of)
        if position is None or gap.generation != position.generation:
            continue
        if gap.again or gap.start <= position.offset:
            now[gap.of] = position.behind(gap)
    return now


def _from(partition: Partition, position: Position) -> Range:
    """All that follows a position."""
    return Range(
        topic=partition.topic,
        partition=partition.number,
        start=position.offset,
        end=position.offset,
        round=0,
        topic_id=position.topic_id,
        generation=position.generation,
    )


def _offsets_of(entry: str) -> tuple[str, Mapping[str, Mapping[str, int]]]:
    """The head of an entry of Spark's log, and its offsets by topic."""
    head, _, last = entry.rstrip("\n").rpartition("\n")
    offsets: Any = json.loads(last)
    return f"{head}\n", offsets
