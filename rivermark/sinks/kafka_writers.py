"""Sending batches to a Kafka topic: each as one transaction, or without any.

The identity of a batch is kept where consumers keep their offsets, in the same transaction as its
messages: a consumer group of the sink's own, without members. So the broker holds both or neither.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from hashlib import blake2b
from typing import Any, Final

import msgspec
from confluent_kafka import (
    KafkaException,
    Producer,
    TopicPartition,
)

from rivermark.model.rows import BatchRows
from rivermark.model.sink import BatchIdentity
from rivermark.sinks.kafka_errors import PATIENCE_SECONDS, retried
from rivermark.sinks.kafka_messages import ABORT_SECONDS, KafkaWriter
from rivermark.sinks.kafka_options import DEDUPLICATION_KEY

TRANSACTION_MILLIS: Final = "600000"
"""How long a batch may take; brokers allow 15 minutes unless they are set otherwise."""


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
