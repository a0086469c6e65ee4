"""To which topic rows go, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from rivermark.connect.kafka import OF_WRITERS, check_settings
from rivermark.model.names import check_brokers, check_topic

DEDUPLICATION_KEY: Final = "deduplication_key"
"""The header by which consumers recognise a message that was sent again."""


@dataclass(frozen=True, kw_only=True)
class KafkaSinkOptions:
    """The options of a `KafkaSink`, which documents them."""

    topic: str
    brokers: str = "127.0.0.1:9092"
    key: tuple[str, ...] = ()
    timestamp: str | None = None
    guarantee: Literal["exactly once", "at least once"] = "exactly once"
    owner: str = "rivermark"
    settings: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    def __post_init__(self) -> None:
        check_topic("sink", self.topic)
        check_brokers(f"the Kafka sink to {self.topic}", self.brokers)
        check_settings(f"the Kafka sink to {self.topic}", self.settings, OF_WRITERS)
