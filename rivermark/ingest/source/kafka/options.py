"""Options by which messages of topics are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from rivermark.connect.kafka import OF_READERS, check_settings, kafka_settings
from rivermark.ingest.source.kafka.formats import Format, KeyFormat
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.names import check_brokers, check_topic


@declared("consumer group")
@dataclass(frozen=True)
class ConsumerGroup:
    """The offsets that a consumer group has committed, as where reading begins."""

    name: str

    def __post_init__(self) -> None:
        if not self.name:
            raise DeclarationError('a consumer group needs a name, as in ConsumerGroup("billing")')


Start: TypeAlias = (
    "Literal['earliest', 'latest'] | datetime | ConsumerGroup | Mapping[str, Mapping[int, int]]"
)


@dataclass(frozen=True, kw_only=True)
class KafkaOptions:
    """The options of a `KafkaSource`, which documents them."""

    brokers: str = "127.0.0.1:9092"
    topics: str | tuple[str, ...] = ()
    pattern: str | None = None
    format: Format = "json"
    key_format: KeyFormat = "text"
    start: Start = field(default="earliest", hash=False)
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    max_messages: int | None = None
    tombstones: Literal["skip", "rows"] = "skip"
    settings: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    def __post_init__(self) -> None:
        if bool(self.names) == bool(self.pattern):
            raise DeclarationError(
                "a Kafka source needs either `topics` or a `pattern` of their names"
            )
        for topic in self.names:
            check_topic("source", topic)
            if self.names.count(topic) > 1:
                raise DeclarationError(f"topic '{topic}' is named twice; name each once")
        place = f"the Kafka source of {', '.join(self.names) or self.pattern}"
        check_brokers(place, self.brokers)
        check_settings(place, self.settings, OF_READERS)
        try:
            re.compile(self.pattern or "")
        except re.error as error:
            raise DeclarationError(
                f"pattern {self.pattern!r} is not a regular expression: {error}"
            ) from None
        if isinstance(self.start, datetime) and self.start.tzinfo is None:
            raise DeclarationError(
                f"start {self.start} has no time zone: write datetime(..., tzinfo=UTC)"
            )
        if isinstance(self.start, Mapping):
            self._check_offsets(self.start)
        if self.max_messages is not None and self.max_messages < 1:
            raise DeclarationError(f"max_messages must be at least 1, got {self.max_messages}")

    def _check_offsets(self, start: Mapping[str, Mapping[int, int]]) -> None:
        """Refuse a start in a topic that is not read, or before its first message."""
        for topic, offsets in start.items():
            if self.names and topic not in self.names:
                raise DeclarationError(
                    f"start names the topic '{topic}', which is not read; it reads "
                    f"{', '.join(self.names)}"
                )
            if any(number < 0 for pair in offsets.items() for number in pair):
                raise DeclarationError(
                    f"start of topic '{topic}': partitions and offsets are 0 and above; write "
                    "'earliest' or 'latest' for its ends"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """The topics that are named."""
        topics = (self.topics,) if isinstance(self.topics, str) else self.topics
        return tuple(topic for topic in topics if topic)

    def client_settings(self) -> dict[str, str]:
        """The settings of a client, with the environment's values in them."""
        return kafka_settings(self.brokers, self.settings)
