"""Questions of a reader to the brokers: the topics, and how far their partitions reach."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka import admin as client

from rivermark.ingest.source.kafka.position import Partition
from rivermark.model.errors import RivermarkError

PATIENCE_SECONDS: Final = 10.0
OFFSET: Final[Any] = client.OffsetSpec  # type: ignore[attr-defined]  # not in its list of names
GONE: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID)
REFUSED: Final = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._UNSUPPORTED_FEATURE)
"""Errors of the client itself, which else all mean that a broker has gone or is not there yet."""

PASSING: Final = (
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.OFFSET_NOT_AVAILABLE,
)
"""What brokers answer while they start or a partition changes hands."""


class BrokersUnreachable(RivermarkError):
    """No broker answers, or not the one that leads a partition."""


@dataclass(frozen=True)
class Topic:
    """A topic as it is now: the broker's id for it, its partitions, and those without a leader."""

    id: str
    partitions: tuple[Partition, ...]
    leaderless: tuple[Partition, ...] = ()


@dataclass(frozen=True)
class Ends:
    """The offset of the first message of a partition, and the one behind the last readable one."""

    first: int
    behind: int


class Cluster:
    """The brokers, asked without a consumer; connects when it is first asked."""

    def __init__(self, settings: Mapping[str, str], isolation: str) -> None:
        self._settings = settings
        self._isolation = (
            IsolationLevel.READ_COMMITTED
            if isolation == "read_committed"
            else IsolationLevel.READ_UNCOMMITTED
        )
        self._problem = ""

    @cached_property
    def _admin(self) -> Any:
        # Its log goes to the error stream of the process; the last problem is in our errors.
        settings: dict[str, Any] = {**self._settings, "log_level": 0, "error_cb": self._note}
        return client.AdminClient(settings)

    def _note(self, error: KafkaError) -> None:
        self._problem = error.str()

    def matching(self, pattern: str) -> frozenset[str]:
        """The topics, none of Kafka's own, whose whole names a regular expression matches."""
        try:
            topics = self._admin.list_topics(timeout=PATIENCE_SECONDS).topics
        except KafkaException as error:
            raise self._explained(error) from error
        return frozenset(
            name for name in topics if not name.startswith("__") and re.fullmatch(pattern, name)
        )

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """Those of the named topics that are there."""
        if not names:
            return {}
        futures = self._admin.describe_topics(
            TopicCollection([*names]), request_timeout=PATIENCE_SECONDS
        )
        known = {}
        for name, future in futures.items():
            described = self._result(future)
            if described is not None:
                partitions = sorted(
                    (Partition(name, p.id), p.leader is not None and p.leader.id >= 0)
                    for p in described.partitions
                )
                known[name] = Topic(
                    str(described.topic_id),
                    tuple(partition for partition, _ in partitions),
                    tuple(partition for partition, led in partitions if not led),
                )
        return known

    def ends_of(self, topics: Collection[Topic]) -> dict[Partition, Ends]:
        """The ends of all partitions of topics."""
        for partition in (p for topic in topics for p in topic.leaderless):
            raise BrokersUnreachable(
                f"partition {partition.number} of topic '{partition.topic}' has no leader: the "
                f"broker that holds it is down ({self._servers})"
            )
        return self.ends([p for topic in topics for p in topic.partitions])

    def ends(self, partitions: Collection[Partition]) -> dict[Partition, Ends]:
        """The ends of partitions; those that have gone meanwhile are left out."""
        return self._ends(partitions, self._isolation)

    def log_ends(self, partitions: Collection[Partition]) -> dict[Partition, Ends]:
        """The ends of partitions, with what stands behind a transaction that is open."""
        return self._ends(partitions, IsolationLevel.READ_UNCOMMITTED)

    def _ends(
        self, partitions: Collection[Partition], isolation: IsolationLevel
    ) -> dict[Partition, Ends]:
        first = self._offsets(partitions, OFFSET.earliest(), isolation)
        behind = self._offsets(partitions, OFFSET.latest(), isolation)
        return {p: Ends(first[p].offset, behind[p].offset) for p in first.keys() & behind.keys()}

    def offsets_at(self, partitions: Collection[Partition], millis: int) -> dict[Partition, int]:
        """The first offset with that timestamp or a later one; partitions without are left out."""
        # Below zero stand names, such as -1 for the latest one.
        offsets = self._offsets(partitions, OFFSET.for_timestamp(max(millis, 0)))
        return {p: each.offset for p, each in offsets.items() if each.offset >= 0}

    def newest(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """The largest timestamp of each partition (milliseconds); empty ones are left out."""
        newest = self._offsets(partitions, OFFSET.max_timestamp())
        return {p: each.timestamp for p, each in newest.items() if each.timestamp >= 0}

    def committed(self, group: str, partitions: Collection[Partition]) -> dict[Partition, int]:
        """The offsets that a consumer group has committed; partitions without are left out."""
        if not partitions:
            return {}
        wanted = [ClientPartition(p.topic, p.number) for p in partitions]
        futures = self._admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, wanted)], request_timeout=PATIENCE_SECONDS
        )
        held = self._result(futures[group])
        return {
            Partition(p.topic, p.partition): p.offset
            for p in (held.topic_partitions if held else ())
            if p.offset >= 0
        }

    def _offsets(
        self,
        partitions: Iterable[Partition],
        spec: object,
        isolation: IsolationLevel | None = None,
    ) -> dict[Partition, Any]:
        request = {ClientPartition(p.topic, p.number): spec for p in partitions}
        if not request:
            return {}
        futures = self._admin.list_offsets(
            request,
            isolation_level=isolation or self._isolation,
            request_timeout=PATIENCE_SECONDS,
        )
        offsets = {Partition(p.topic, p.partition): self._result(f) for p, f in futures.items()}
        return {p: offset for p, offset in offsets.items() if offset is not None}

    def _result(self, future: Future[Any]) -> Any:
        """The result of a request; None where it is about a topic that is not there."""
        try:
            result = future.result(PATIENCE_SECONDS + 5)
        except KafkaException as error:
            if error.args[0].code() in GONE:
                return None
            raise self._explained(error) from error
        except TimeoutError as error:
            raise BrokersUnreachable(self._unreachable()) from error
        self._problem = ""
        return result

    def _explained(self, error: KafkaException) -> RivermarkError:
        cause: KafkaError = error.args[0]
        local = cause.code() < 0 and cause.code() not in REFUSED
        if local or cause.retriable() or cause.code() in PASSING:
            self._problem = self._problem or cause.str()
            return BrokersUnreachable(self._unreachable())
        return RivermarkError(f"Kafka at {self._servers} refuses: {cause.str()}")

    @property
    def _servers(self) -> str:
        return self._settings["bootstrap.servers"]

    def _unreachable(self) -> str:
        cause = f": {self._problem}" if self._problem else ""
        return f"no Kafka broker answers at {self._servers}{cause}"
