"""Errors of a Kafka client that sends: a refused row, advice, and what passes by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import (
    KafkaError,
    KafkaException,
)

PATIENCE_SECONDS: Final = 60.0

FENCED: Final = (
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
)


class RowRefused(KafkaException):
    """The message of a row is refused, alone or with those that were sent with it."""

    def __init__(self, error: KafkaError, key: bytes | None, size: int) -> None:
        super().__init__(error)
        self.size = size
        self.has_key = key is not None
        named = "without a key" if key is None else f"with key {key.decode()}"
        self.row = f"the row {named} ({size:,} bytes): "


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
