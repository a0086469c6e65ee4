"""Reading ranges of offsets, and what messages become; in the driver and in Spark's workers."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition

from rivermark.ingest.source.kafka.decoding import record_of, value_of
from rivermark.ingest.source.kafka.formats import Format, KeyFormat
from rivermark.ingest.source.kafka.position import Partition, Range
from rivermark.ingest.source.kafka.registry_header import UnreadableValue
from rivermark.model.errors import RecordsLost, RivermarkError
from rivermark.model.time import EPOCH

AT_ONCE: Final = 10_000
FILL_SECONDS: Final = 0.02
"""How long the client waits for so many: it returns no sooner, however few there are."""
SILENCE_SECONDS: Final = 60.0
"""How long a broker may send nothing of a range that it holds."""
PEEKED: Final = 500
PEEK_SECONDS: Final = 3.0
NO_TIMESTAMP: Final = -1
WHITE: Final = " \t\r\n"
SPACE: Final = f"{WHITE}\ufeff"
READING: Final = {
    # A consumer that joins no group still has to name one.
    "group.id": "rivermark",
    "enable.auto.commit": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    # A range ends where the broker has no more; how long it waits for more first.
    "fetch.wait.max.ms": "50",
    "queued.max.messages.kbytes": "16384",
    "log_level": "0",
}

Read: TypeAlias = "tuple[int, str, Mapping[str, Any] | None]"
"""The offset of a message, its payload, and its members where its value was decoded."""


@dataclass(frozen=True)
class Reading:
    """Settings for reading messages: those of the client, and the format of values."""

    settings: Mapping[str, str]
    isolation: str
    format: Format
    tombstones: str
    key_format: KeyFormat = "text"
    wanted: frozenset[str] | None = None
    """The columns that matter, in lower case; None for all."""

    def consumer(self) -> Consumer:
        """A consumer that reads what it is told to, and commits nothing."""
        return Consumer({**READING, **self.settings, "isolation.level": self.isolation})

    def first(self, starts: Mapping[Partition, int]) -> Iterator[Message]:
        """Some messages of partitions from these offsets on, the first one of each among them."""
        consumer = self.consumer()
        waiting, until = set(starts), time.monotonic() + PEEK_SECONDS
        try:
            consumer.assign([ClientPartition(*p, start) for p, start in starts.items()])
            while waiting and time.monotonic() < until:
                for message in consumer.consume(PEEKED, timeout=FILL_SECONDS):
                    waiting.discard(Partition(message.topic() or "", message.partition() or 0))
                    if message.error() is None:
                        yield message
        finally:
            consumer.close()

    def rows(self, consumer: Consumer, ranges: Sequence[Range]) -> list[list[Read]]:
        """Each message of each range, in the order of offsets."""
        messages: list[list[Message]] = [[] for _ in ranges]
        waiting = [(n, each) for n, each in enumerate(ranges) if each.end > each.start]
        while waiting:
            # One range of a partition at a time.
            first = {each.of: (n, each) for n, each in reversed(waiting)}
            for partition, own in _read(consumer, [e for _, e in first.values()]).items():
                messages[first[partition][0]] = own
            waiting = [item for item in waiting if item not in first.values()]
        return [
            [
                (_offset(m), *payload_of(m, self.format, self.tombstones, self.key_format))
                for m in each
            ]
            for each in messages
        ]


def _read(consumer: Consumer, ranges: Sequence[Range]) -> dict[Partition, list[Message]]:
    """The messages of a range of each of some partitions."""
    messages: dict[Partition, list[Message]] = {each.of: [] for each in ranges}
    open_ranges = {each.of: each for each in ranges}
    consumer.assign([ClientPartition(e.topic, e.partition, e.start) for e in ranges])
    heard = time.monotonic()
    try:
        while open_ranges:
            batch = consumer.consume(AT_ONCE, timeout=FILL_SECONDS)
            if batch:
                heard = time.monotonic()
            elif time.monotonic() - heard > SILENCE_SECONDS:
                waiting = ", ".join(str(partition) for partition in open_ranges)
                raise RivermarkError(f"Kafka has sent nothing of {waiting} for {SILENCE_SECONDS} s")
            for message in batch:
                partition = Partition(message.topic() or "", message.partition() or 0)
                wanted = open_ranges.get(partition)
                if wanted is None:
                    continue
                error, offset = message.error(), _offset(message)
                if error is not None:
                    _check(error, wanted, offset)
                elif offset < wanted.end:
                    messages[partition].append(message)
                if offset >= wanted.end - (error is None):
                    del open_ranges[partition]
                    consumer.pause([ClientPartition(*partition)])
    finally:
        # A partition would stay paused when it is assigned again.
        consumer.resume([ClientPartition(*partition) for partition in messages])
        consumer.unassign()
    return messages


def _check(error: KafkaError, wanted: Range, offset: int) -> None:
    """True if a consumer's event is the end of a partition, behind the range; raises otherwise."""
    code = error.code()
    if code == KafkaError._PARTITION_EOF and offset >= wanted.end:
        return
    if code == KafkaError._PARTITION_EOF:
        raise RecordsLost(
            f"partition {wanted.partition} of topic '{wanted.topic}' ends at offset {offset}: "
            f"offsets {offset} to {wanted.end - 1} were there when they were planned, and are gone"
        )
    if code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        raise RecordsLost(
            f"partition {wanted.partition} of topic '{wanted.topic}': of the offsets "
            f"{wanted.start} to {wanted.end - 1} the first ones are gone: {error.str()}"
        )
    # The client goes on by itself after errors of its own, such as those of connections.
    if error.fatal() or (code > 0 and not error.retriable()):
        raise KafkaException(error)


def payload_of(
    message: Message, kind: Format, tombstones: str = "skip", key_format: KeyFormat = "text"
) -> tuple[str, Mapping[str, Any] | None]:
    """A message as one JSON object, or as a text that is none where its value is not readable.

    With its members, where the value was decoded.

    Behind its own members comes what the broker says of it, which counts where both have a name:
    of a key that occurs twice the last value does. The text of a value that is no object, or no
    UTF-8, stands behind an object of what is known, with its bytes where text cannot hold them: no
    parser takes that for a record, and all of it is kept. Of a value that is not of its format the
    bytes are kept, and why they cannot be read.
    """
    value = message.value()
    record: dict[str, Any] | None = None
    if value is None and tombstones == "skip":
        return "", None
    known = _known(message)
    key: Any = message.key()
    if key is not None:
        try:
            known = f"{known},{members_of_key(key, key_format)}"
        except UnreadableValue as error:
            text = (value or b"").decode(errors="replace")
            return (
                f'{known},"_key_bytes":"{b64encode(key).decode()}"}} its key: {error}: {text}',
                None,
            )
    try:
        headers: Any = message.headers()
    except UnicodeDecodeError:
        known = f'{known},"_bytes":"{b64encode(value or b"").decode()}"'
        return f"{known}}} the name of a header is no UTF-8", None
    for name, content in headers or ():
        known = f"{known},{member_of(f'_header.{name}', content)}"
    if value is None:
        return f'{known},"_tombstone":true}}', None
    if kind == "json" and value.startswith(b'{"') and value.endswith(b"}"):
        # As most are; the rest of this function costs half as much again.
        with suppress(UnicodeDecodeError):
            return f"{value[:-1].decode()},{known[1:]}}}", None
    if kind == "bytes":
        return f'{known},"bytes":"{b64encode(value).decode()}"}}', None
    try:
        if isinstance(kind, str):
            text = value.decode()
        else:
            record, text = record_of(value, kind)
    except UnicodeDecodeError:
        return (
            f'{known},"_bytes":"{b64encode(value).decode()}"}} {value.decode(errors="replace")}',
            None,
        )
    except UnreadableValue as error:
        return f'{known},"_bytes":"{b64encode(value).decode()}"}} {error}', None
    if kind == "text":
        return f'{known},"text":{TEXT(text)}}}', None
    text = text.lstrip(SPACE)
    if not text.startswith("{"):
        text = text or TEXT(text)
        return f"{known}}} {text}", None
    whole = text.rstrip(WHITE)
    if not whole.endswith("}"):
        return f"{known},{text[1:]}", None
    if record is not None:
        record |= msgspec.json.decode(f"{known}}}")
    members = whole[1:-1]
    joined = f"{{{members},{known[1:]}}}" if members.strip(WHITE) else f"{known}}}"
    return joined, record


def _known(message: Message) -> str:
    """The beginning of an object: topic, partition, offset and timestamp."""
    _, millis = message.timestamp()
    at = f',"_timestamp":"{_time(millis)}"' if millis != NO_TIMESTAMP else ""
    return (
        f'{{"_topic":"{message.topic()}","_partition":{message.partition()},'
        f'"_offset":{message.offset()}{at}'
    )


def _time(millis: int) -> str:
    """A timestamp in ISO 8601; its number where a producer took another unit: no time at all."""
    try:
        return f"{_second(millis // 1000)}.{millis % 1000:03d}Z"
    except OverflowError:
        return f"{millis} ms"


@lru_cache(maxsize=4096)
def _second(seconds: int) -> str:
    """A second since 1970 in ISO 8601, without a zone: many messages have the same one."""
    return (EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()


def _offset(message: Message) -> int:
    offset = message.offset()
    return -1 if offset is None else offset


TEXT: Final = json.JSONEncoder(ensure_ascii=False).encode
"""Writes a text, or None, as JSON."""
BYTES: Final = {"int": 4, "long": 8, "uuid": 16}


def members_of_key(key: bytes, kind: KeyFormat) -> str:
    """A key by its format: `_key`, of a record `_key.<name>`, or `_key_bytes` in base64.

    Raises:
        UnreadableValue: it is none of its format.
        RivermarkError: its schema is not in the registry.
    """
    match kind:
        case "text" if b"\0" not in key:
            return member_of("_key", key)
        case "text" | "bytes":
            # A number in binary may be UTF-8 by chance; nearly all such have a zero byte.
            return f'"_key_bytes":"{b64encode(key).decode()}"'
        case "int" | "long" | "uuid":
            if len(key) != BYTES[kind]:
                raise UnreadableValue(f"{len(key)} bytes are no {kind}")
            if kind == "uuid":
                return f'"_key":"{UUID(bytes=key)}"'
            return f'"_key":{int.from_bytes(key, "big", signed=True)}'
        case _:
            _, text = value_of(key, kind)
    if not text.startswith("{"):
        return f'"_key":{text}'
    members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    named = (f"{TEXT(f'_key.{name}')}:{bytes(value).decode()}" for name, value in members.items())
    return ",".join(named) or '"_key":{}'


def member_of(name: str, value: bytes | None) -> str:
    """A member with a text, or `<name>_bytes` with base64 where the bytes are none."""
    try:
        text = None if value is None else value.decode()
    except UnicodeDecodeError:
        name, text = f"{name}_bytes", b64encode(value or b"").decode()
    return f"{TEXT(name)}:{TEXT(text)}"
