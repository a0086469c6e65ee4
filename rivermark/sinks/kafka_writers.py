"""Sending batches to a Kafka topic: each as one transaction, or without any.

The identity of a batch is kept where consumers keep their offsets, in the same transaction as its
messages: a consumer group of the sink's own, without members. So the broker holds both or neither.
"""

from __future__ import annotations

import json
import logging
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from functools import cached_property, partial
from hashlib import blake2b
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
from rivermark.sinks.kafka_options import DEDUPLICATION_KEY, KafkaSinkOptions
from rivermark.sinks.python_rows import in_order, python_rows

LOG: Final = logging.getLogger("rivermark")
PATIENCE_SECONDS: Final = 60.0
ABORT_SECONDS: Final = 10.0
AT_ONCE: Final = 10_000
"""Rows that are Python objects at a time."""
TRANSACTION_MILLIS: Final = "600000"
"""How long a batch may take; brokers allow 15 minutes unless they are set otherwise."""
FENCED: Final = (
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
)
NOT_OF_A_ROW: Final = (*FENCED, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
"""What becomes of the messages of a transaction that has failed, for another reason."""
MESSAGES_ENOUGH: Final = 100
"""A topic with so many messages should have some in each of its partitions."""


class RowRefused(KafkaException):
    """The message of a row is refused, alone or with those that were sent with it."""

    def __init__(self, error: KafkaError, key: bytes | None, size: int) -> None:
        super().__init__(error)
        self.size = size
        self.has_key = key is not None
        named = "without a key" if key is None else f"with key {key.decode()}"
        self.row = f"the row {named} ({size:,} bytes): "


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


class Transactional(KafkaWriter):
    """Each batch is one transaction, with its identity in it; shuts out a writer before it."""

    _is_current = False

    def _new_producer(self) -> Producer:
        """A producer; what a killed writer had begun has ended, and one that runs is shut out."""
        made = Producer(
            {
                "transaction.timeout.ms": TRANSACTION_MILLIS,
                **self._producer_settings,
                "transactional.id": self._name,
            }
        )
        self._try("begin", lambda: retried(lambda: made.init_transactions(PATIENCE_SECONDS)))
        return made

    def last(self) -> BatchIdentity | None:
        """The batch that the sink's consumer group holds."""
        if not self._is_current:
            # First, so that a transaction of a killed writer has ended, one way or the other.
            assert self._producer  # noqa: S101
            self._try("find", lambda: retried(self._check_topic))
            [held] = self._try("read", lambda: retried(self._committed))
            self._last = self._identity(held.metadata) if held.offset >= 0 else None
            self._is_current = True
        return self._last

    def recorded(self) -> int:
        """The batch that the group holds, asked without shutting out who writes; -1 without any."""
        self._try("find", lambda: self._check_topic(ABORT_SECONDS))
        [held] = self._try("read", lambda: self._committed(ABORT_SECONDS))
        identity = self._identity(held.metadata) if held.offset >= 0 else None
        return -1 if identity is None else identity.batch

    def _committed(self, patience: float = PATIENCE_SECONDS) -> list[TopicPartition]:
        places = self._consumer.committed([self._place(-1)], patience)
        for place in places:
            # Unknown is not none: a batch would be sent again.
            if place.error is not None:
                raise KafkaException(place.error)
        return places

    def _identity(self, text: str | None) -> BatchIdentity | None:
        held = msgspec.json.decode(text or "{}", type=dict[str, Any])
        identity = BatchIdentity(
            held.get("stream", ""), held.get("generation", -1), held.get("batch", -1)
        )
        return identity if identity == self._origin.batch(identity.batch) else None

    def _place(self, offset: int, metadata: str = "") -> TopicPartition:
        return TopicPartition(self._sink.topic, 0, offset, metadata)

    def _send(self, rows: BatchRows, identity: BatchIdentity) -> None:
        producer = self._producer
        self._is_current = False
        producer.begin_transaction()
        try:
            headers = {name: str(value) for name, value in asdict(identity).items()}
            for row, value in self._messages(rows):
                self._produce(row, value, headers)
            self._flush()
            place = self._place(identity.batch + 1, json.dumps(asdict(identity)))
            group = self._consumer.consumer_group_metadata()
            bind = partial(producer.send_offsets_to_transaction, [place], group, PATIENCE_SECONDS)
            self._within(lambda: retried(bind))
            self._origin.check()
            self._within(lambda: producer.commit_transaction(PATIENCE_SECONDS))
        except Exception:
            # Readers of what is committed would wait for ten minutes. Where this fails too, the
            # next one begins with a new producer, which ends what this one left open.
            with suppress(KafkaException):
                producer.abort_transaction(ABORT_SECONDS)
            del self._producer
            raise
        self._is_current = True


class Repeating(KafkaWriter):
    """Batches without transactions: one that is sent again is so with the same header."""

    _checked = False

    def _new_producer(self) -> Producer:
        # Idempotent: what the client itself sends again comes once, and in order.
        return Producer({**self._producer_settings, "enable.idempotence": "true"})

    def last(self) -> BatchIdentity | None:
        """The last batch of this writer; the brokers do not know which ones came before."""
        if not self._checked:
            self._try("find", lambda: retried(self._check_topic))
            self._checked = True
        return self._last

    def _send(self, rows: BatchRows, identity: BatchIdentity) -> None:
        headers = {name: str(value) for name, value in asdict(identity).items()}
        equals: Counter[str] = Counter()
        try:
            for row, value in self._messages(rows):
                # By content and not by place: Spark may repeat a batch with its rows in another
                # order.
                digest = blake2b(value, digest_size=12).hexdigest()
                equals[digest] += 1
                key = "/".join((*headers.values(), digest, str(equals[digest])))
                self._produce(row, value, {**headers, DEDUPLICATION_KEY: key})
            self._flush()
        except KafkaException:
            del self._producer
            self._checked = False
            raise


def hint(cause: KafkaError) -> str:
    """The advice about an error, where one is known."""
    if cause.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        return (
            "; the brokers allow `transaction.max.timeout.ms` at most: give the sink "
            'settings={"transaction.timeout.ms": "..."}, longer than a batch takes'
        )
    if cause.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        return (
            '; give the sink settings={"message.max.bytes": "..."}, and the topic as large a '
            "`max.message.bytes`, or send fewer columns. Smaller rows are sent together: give the "
            'sink settings={"batch.size": "..."} below that'
        )
    if cause.code() in FENCED:
        return "; another run of this stream has begun to write there, and this one is shut out"
    if cause.code() == KafkaError.INVALID_TIMESTAMP:
        return (
            "; the column of timestamps holds one that the topic does not take: see its "
            "`message.timestamp.after.max.ms` and `message.timestamp.before.max.ms`"
        )
    return ""


def retried(action: Callable[[], Any]) -> Any:
    """Do something again while the brokers, or those of a new topic, only ask for time."""
    # The client calls few errors retriable outside of transactions.
    passing = (
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    )
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return action()
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            passes = cause.retriable() or cause.code() in passing
            if not passes or time.monotonic() > until:
                raise
            time.sleep(0.2)
