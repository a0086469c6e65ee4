"""Rows of a batch as messages of a Kafka topic: what each becomes, and whether brokers took it."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from threading import Thread
from typing import Any, Final

import msgspec
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from rivermark.connect.kafka import kafka_settings
from rivermark.model.errors import RivermarkError
from rivermark.model.json_text import json_text
from rivermark.model.rows import BatchRows, Rows, as_rows
from rivermark.model.sink import BatchIdentity, SinkContext, SinkWriter
from rivermark.model.time import millis_of
from rivermark.sinks.kafka_errors import FENCED, PATIENCE_SECONDS, RowRefused, hint
from rivermark.sinks.kafka_options import KafkaSinkOptions
from rivermark.sinks.python_rows import in_order, python_rows

LOG: Final = logging.getLogger("rivermark")

ABORT_SECONDS: Final = 10.0

AT_ONCE: Final = 10_000
"""Rows that are Python objects at a time."""

NOT_OF_A_ROW: Final = (*FENCED, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
"""What becomes of the messages of a transaction that has failed, for another reason."""

MESSAGES_ENOUGH: Final = 100
"""A topic with so many messages should have some in each of its partitions."""


class KafkaWriter(SinkWriter):
    """The base of all writers: the topic, and what a row becomes."""

    def __init__(self, sink: KafkaSinkOptions, context: SinkContext) -> None:
        self._sink = sink
        self._origin = context.origin
        self._key = sink.key or context.table.keys
        self._columns = context.table.schema.fieldNames()
        self._name = ".".join((sink.owner, context.origin.stream, context.table.name, sink.topic))
        self._settings = kafka_settings(sink.brokers, sink.settings)
        self._last: BatchIdentity | None = None
        self._refused: list[RowRefused] = []
        self._problem = ""

    @cached_property
    def _producer(self) -> Producer:
        return self._new_producer()

    @abstractmethod
    def _new_producer(self) -> Producer:
        """A producer that is ready to send."""

    @property
    def _producer_settings(self) -> dict[str, Any]:
        return {
            # Without one the client raises fatal errors itself, amidst the reports of deliveries.
            "error_cb": self._note,
            "linger.ms": "5",
            # As Java's clients divide keys among partitions.
            "partitioner": "murmur2_random",
            "log_level": "0",
            **self._settings,
        }

    @cached_property
    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "log_level": "0",
                **self._settings,
                "group.id": self._name,
                "enable.auto.commit": "false",
                "isolation.level": "read_committed",
            }
        )

    def write(
        self, rows: Rows, identity: BatchIdentity, metadata: Mapping[str, Any] | None = None
    ) -> int:
        """Send the rows, unless the batch is known to be sent."""
        last = self.last()
        if last is not None and last.batch >= identity.batch:
            return 0
        batch_rows = as_rows(rows)
        self._refused, self._problem = [], ""
        self._try("write", lambda: self._send(batch_rows, identity))
        self._last = identity
        return batch_rows.count()

    @abstractmethod
    def _send(self, rows: BatchRows, identity: BatchIdentity) -> None:
        """Send the rows of a batch; raises where the brokers do not have all of them."""

    def _messages(self, rows: BatchRows) -> Iterator[tuple[Mapping[str, Any], bytes]]:
        """Each row with the value that it becomes, by the column of timestamps if there is one."""
        # Windows that close in one batch come in no order; rows of one moment stay as they are.
        by = self._sink.timestamp
        pieces = in_order(rows, self._columns, by) if by else rows.pieces(self._columns)
        for piece in pieces:
            for start in range(0, piece.num_rows, AT_ONCE):
                for row in python_rows(piece.slice(start, AT_ONCE)):
                    yield row, json_text(row)

    def _produce(self, row: Mapping[str, Any], value: bytes, headers: Mapping[str, str]) -> None:
        at: datetime | str | None = row[self._sink.timestamp] if self._sink.timestamp else None
        key = self._key_of(row)
        # 0 is now, for the client, and -1 none: as times they would be others in silence.
        millis = 0 if at is None or isinstance(at, str) else millis_of(at)
        if at is not None and millis in (0, -1):
            refused = KafkaError(KafkaError.INVALID_TIMESTAMP, f"its timestamp is {at}")
            raise RowRefused(refused, key, len(value))
        while True:
            try:
                self._producer.produce(
                    self._sink.topic,
                    value,
                    key=key,
                    timestamp=millis,
                    headers={**headers},
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(1)
            except KafkaException as error:
                if error.args[0].code() == KafkaError._STATE:
                    # A row that was sent before has ended the transaction: its report says why.
                    self._producer.poll(0 if self._refused else ABORT_SECONDS)
                    if self._refused:
                        raise self._worst() from error
                raise RowRefused(error.args[0], key, len(value)) from error
            else:
                self._producer.poll(0)
                return

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and error.code() not in NOT_OF_A_ROW:
            self._refused.append(RowRefused(error, message.key(), len(message.value() or b"")))

    def _note(self, error: KafkaError) -> None:
        self._problem = f": {error.str()}"

    def _flush(self) -> None:
        """Wait until the brokers have every message; raises where they do not take one."""
        unsent = self._producer.flush(PATIENCE_SECONDS)
        if self._refused:
            raise self._worst()
        if unsent:
            with suppress(KafkaException):
                # The client waits for a topic that was deleted as for brokers that are away.
                self._check_topic(ABORT_SECONDS)
            raise self._too_slow(f"{unsent} messages were not taken")

    def _too_slow(self, what: str) -> KafkaException:
        reason = f"{what} within {PATIENCE_SECONDS:g} s{self._problem}"
        return KafkaException(KafkaError(KafkaError._TIMED_OUT, reason))

    def _within(self, action: Callable[[], Any]) -> None:
        """Do something with the brokers; raises where it does not end in time.

        While they are away, the client does not heed its own time-out. What it is at is left
        behind: the next producer of the same name shuts it out.
        """
        done: Future[Any] = Future()

        def run() -> None:
            try:
                done.set_result(action())
            except BaseException as error:
                done.set_exception(error)

        Thread(target=run, name=f"kafka {self._sink.topic}", daemon=True).start()
        try:
            done.result(PATIENCE_SECONDS + ABORT_SECONDS)
        except FutureTimeout:
            raise self._too_slow("the brokers did not answer") from None

    def _worst(self) -> RowRefused:
        """The row for which others were refused with it: the largest, or by its time the last."""
        cause: KafkaError = self._refused[0].args[0]
        if cause.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return max(self._refused, key=lambda refused: refused.size)
        if cause.code() == KafkaError.INVALID_RECORD:
            # A compacted topic takes none without a key, and others are refused with it.
            keyless = next((each for each in self._refused if not each.has_key), None)
            if keyless is not None:
                keyless.row += "a compacted topic needs one, give each row a `key`: "
                return keyless
        return self._refused[-1]

    def _key_of(self, row: Mapping[str, Any]) -> bytes | None:
        values = [row[name] for name in self._key]
        if not values or values == [None]:
            return None
        if len(values) > 1:
            return json_text(values)
        text = json_text(values[0])
        return msgspec.json.decode(text).encode() if text.startswith(b'"') else text

    def _check_topic(self, patience: float = PATIENCE_SECONDS) -> None:
        """Refuse a topic that is missing, which would be waited for; name its empty partitions."""
        topics = self._consumer.list_topics(timeout=patience).topics
        if self._sink.topic not in topics:
            raise RivermarkError(
                f"stream '{self._origin.stream}': there is no topic '{self._sink.topic}' at Kafka "
                f"{self._sink.brokers}; make it, with the partitions that its readers need"
            )
        numbers = sorted(topics[self._sink.topic].partitions)
        if len(numbers) < 2:
            return
        places = [TopicPartition(self._sink.topic, number) for number in numbers]
        ends = [self._consumer.get_watermark_offsets(p, patience)[1] for p in places]
        empty = [str(number) for number, end in zip(numbers, ends, strict=True) if not end]
        if empty and sum(ends) >= MESSAGES_ENOUGH:
            LOG.warning(
                "partition %s of topic '%s' is empty, while the others have taken %d messages: no "
                "key of stream '%s' falls there, and readers that wait for every partition stand "
                "still",
                ", ".join(empty),
                self._sink.topic,
                sum(ends),
                self._origin.stream,
            )

    def _try(self, what: str, action: Callable[[], Any]) -> Any:
        """Do something with the brokers; their errors name topic and stream."""
        try:
            return action()
        except (KafkaException, SystemError) as raised:
            # The client raises a fatal error while deliveries are still reported, whose report then
            # fails in Python itself.
            error = raised.__cause__ if isinstance(raised, SystemError) else raised
            if not isinstance(error, KafkaException):
                raise
            cause = error.args[0]
            row = error.row if isinstance(error, RowRefused) else ""
            raise RivermarkError(
                f"stream '{self._origin.stream}' cannot {what} its batch at Kafka topic "
                f"'{self._sink.topic}' of {self._sink.brokers}: {row}{cause.str()}{hint(cause)}"
            ) from error

    def close(self) -> None:
        """Close the connections."""
        if "_consumer" in self.__dict__:
            self._consumer.close()
            del self._consumer
        self.__dict__.pop("_producer", None)
