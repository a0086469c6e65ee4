"""Topics of Kafka as a source: a split is a range of offsets of one partition."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Literal, TypeAlias

from rivermark.model.errors import DeclarationError, RivermarkError
from rivermark.model.source import Source, SourceReader

Format: TypeAlias = Literal["json", "text", "bytes"]
Start: TypeAlias = "Literal['earliest', 'latest'] | datetime | Mapping[str, Mapping[int, int]]"


@dataclass(frozen=True, kw_only=True)
class KafkaSource(Source):
    """Messages of one topic, of several, or of all whose names fit `pattern`, a regular expression.

    `format` says what values are: `json` is an object; `text` (UTF-8) comes in a column `text`;
    `bytes` in a column `bytes`, as base64. Beside its values each message has `_topic`,
    `_partition`, `_offset`, `_timestamp` (UTC), `_key` as text (`_key_bytes`, base64, where it is
    none), and each header as `_header.<name>`; fields take them by their `names`. In the raw table
    `_row` is the offset.

    `start` counts for the first start alone: `earliest`, `latest`, a moment (the first messages
    with that timestamp or a later one), or offsets by topic and partition. A partition or topic
    that appears later, or that the offsets leave out, is read from its first message. Messages of
    transactions that are open or were aborted are not read, unless `isolation` says so.

    A planned batch holds `max_messages` at most; of several partitions those of the same span of
    message timestamps. Messages without a value (tombstones) are counted and become no rows; with
    `tombstones="rows"` they are records with `_tombstone`, and without values.

    `settings` are those of librdkafka, such as `security.protocol`. They, and `brokers`, name
    variables of the environment as `$NAME`, so that no secret stands in a declaration.

    Raises:
        DeclarationError: not either of `topics` and `pattern`, `start` without a time zone, or
            `max_messages` below 1.
    """

    brokers: str = "127.0.0.1:9092"
    topics: str | tuple[str, ...] = ()
    pattern: str | None = None
    format: Format = "json"
    start: Start = field(default="earliest", hash=False)
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    max_messages: int = 50_000
    tombstones: Literal["skip", "rows"] = "skip"
    settings: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    kind: ClassVar[str] = "kafka"
    unit: ClassVar[str] = "range"
    skipped: ClassVar[str | None] = "tombstones"
    together: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if bool(self.names) == bool(self.pattern):
            raise DeclarationError("either topics or a pattern of their names")
        if isinstance(self.start, datetime) and self.start.tzinfo is None:
            raise DeclarationError(f"start {self.start} has no time zone")
        if self.max_messages < 1:
            raise DeclarationError(f"max_messages must be at least 1, got {self.max_messages}")

    @property
    def names(self) -> tuple[str, ...]:
        """The topics that are named."""
        return (self.topics,) if isinstance(self.topics, str) else self.topics

    @property
    def name(self) -> str:
        """The topics, or the pattern."""
        return self.pattern or ", ".join(self.names)

    @property
    def asset(self) -> tuple[str, ...]:
        """The topics, below `kafka`."""
        return ("kafka", re.sub(r"\W+", "_", self.name).strip("_"))

    @property
    def description(self) -> str:
        """Which topics, and where."""
        if self.pattern:
            return f"Kafka topics like `{self.pattern}` of {self.brokers}."
        topics = ", ".join(f"`{topic}`" for topic in self.names)
        return f"Kafka topic{'s' if len(self.names) > 1 else ''} {topics} of {self.brokers}."

    def open(self, landing_root: str) -> SourceReader:
        """Open a reader; it connects when it is first used."""
        # The reader loads the client, which a declaration does not need.
        try:
            from rivermark.ingest.source.kafka.reader import KafkaReader
        except ModuleNotFoundError as error:
            if error.name != "confluent_kafka":
                raise
            raise RivermarkError(
                "reading Kafka needs its client: pip install 'rivermark[kafka]'"
            ) from error
        return KafkaReader(self, self.client_settings())

    def client_settings(self) -> dict[str, str]:
        """The settings of a client, with the environment's values in them."""
        named = {"bootstrap.servers": self.brokers, **self.settings}
        return {name: _resolved(name, value) for name, value in named.items()}


def _resolved(name: str, value: str) -> str:
    if not value.startswith("$"):
        return value
    resolved = os.environ.get(value[1:])
    if resolved is None:
        raise RivermarkError(
            f"the Kafka setting '{name}' is to be that of the environment variable {value[1:]}, "
            "which is not set"
        )
    return resolved
