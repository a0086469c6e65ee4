"""Settings of a client of Kafka, without those that undo what a source or sink promises."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Final

from rivermark.connect.environment import resolved_settings
from rivermark.model.errors import DeclarationError, RivermarkError

MISSPELT: Final = 0.93
"""How like a known name another one is that can only be meant for it."""
ADDRESS: Final = "the brokers are those of `brokers`"
POSITIONS: Final = (
    "positions are those of the plan, in the lake: a group's would be moved under another consumer"
)
START: Final = "where to begin is `start`, and a lost offset stops the stream"
RANGES: Final = "a range of offsets ends by the broker's own sign"
OF_READERS: Final = {
    "bootstrap.servers": ADDRESS,
    "metadata.broker.list": ADDRESS,
    "group.id": POSITIONS,
    "group.instance.id": POSITIONS,
    "group.protocol": POSITIONS,
    "partition.assignment.strategy": POSITIONS,
    "enable.auto.commit": POSITIONS,
    "auto.commit.enable": POSITIONS,
    "auto.commit.interval.ms": POSITIONS,
    "enable.auto.offset.store": POSITIONS,
    "offset.store.method": POSITIONS,
    "auto.offset.reset": START,
    "enable.partition.eof": RANGES,
    "isolation.level": "write isolation=",
}
ONCE: Final = "by it a batch is in the topic once"
OF_WRITERS: Final = {
    "bootstrap.servers": ADDRESS,
    "metadata.broker.list": ADDRESS,
    "transactional.id": ONCE,
    "enable.idempotence": ONCE,
    "enable.gapless.guarantee": ONCE,
    "max.in.flight": ONCE,
    "max.in.flight.requests.per.connection": ONCE,
    "acks": "a message counts when all replicas in sync have it",
    "request.required.acks": "a message counts when all replicas in sync have it",
    "delivery.report.only.error": "each delivery is waited for",
    "group.id": POSITIONS,
    "enable.auto.commit": POSITIONS,
    "isolation.level": ONCE,
}
SENT_ONCE: Final = "the row would be lost where a broker ends, and nothing says so"
DECODED: Final = "keys and messages are read and written as bytes"
OF_REAL_TIME: Final = {
    "bootstrap.servers": ADDRESS,
    "group.id": POSITIONS,
    "group.instance.id": POSITIONS,
    "enable.auto.commit": POSITIONS,
    "auto.commit.interval.ms": POSITIONS,
    "auto.offset.reset": START,
    "isolation.level": "it reads as the ingest of its stream does",
    "interceptor.classes": "what it changes is in no table",
    **dict.fromkeys(("key.deserializer", "value.deserializer"), DECODED),
    **dict.fromkeys(("key.serializer", "value.serializer"), DECODED),
    **dict.fromkeys(("acks", "retries", "enable.idempotence"), SENT_ONCE),
    **dict.fromkeys(("max.in.flight.requests.per.connection", "transactional.id"), SENT_ONCE),
}
"""Of Java's client, which reads and writes in real time."""
KNOWN: Final = (
    *OF_READERS,
    *OF_WRITERS,
    *("client.id", "client.rack", "security.protocol", "message.max.bytes", "linger.ms"),
    *("receive.message.max.bytes", "socket.timeout.ms", "socket.keepalive.enable", "debug"),
    *("metadata.max.age.ms", "broker.address.family", "reconnect.backoff.ms", "batch.size"),
    *("reconnect.backoff.max.ms", "statistics.interval.ms", "compression.type", "partitioner"),
    *("compression.codec", "compression.level", "queue.buffering.max.ms", "message.timeout.ms"),
    *("queue.buffering.max.messages", "queue.buffering.max.kbytes", "delivery.timeout.ms"),
    *("batch.num.messages", "request.timeout.ms", "retries", "retry.backoff.ms"),
    *("transaction.timeout.ms", "fetch.min.bytes", "fetch.max.bytes", "fetch.wait.max.ms"),
    *("fetch.message.max.bytes", "max.partition.fetch.bytes", "check.crcs"),
    *("queued.min.messages", "queued.max.messages.kbytes", "session.timeout.ms"),
    *("heartbeat.interval.ms", "max.poll.interval.ms", "ssl.ca.location", "ssl.ca.pem"),
    *("ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location", "ssl.key.pem"),
    *("ssl.key.password", "ssl.keystore.location", "ssl.keystore.password", "ssl.cipher.suites"),
    *("ssl.endpoint.identification.algorithm", "enable.ssl.certificate.verification"),
    *("sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password"),
    *("sasl.kerberos.service.name", "sasl.kerberos.principal", "sasl.kerberos.keytab"),
    *("sasl.oauthbearer.method", "sasl.oauthbearer.config", "sasl.oauthbearer.client.id"),
    *("sasl.oauthbearer.client.secret", "sasl.oauthbearer.token.endpoint.url"),
    *("sasl.oauthbearer.scope", "sasl.oauthbearer.extensions"),
)
"""Settings that are often written; the client knows more of them."""


def check_settings(
    what: str,
    settings: Mapping[str, str],
    refused: Mapping[str, str],
    known: Collection[str] = KNOWN,
) -> None:
    """Refuse a setting that undoes a promise, and one that looks like a misspelt one.

    Raises:
        DeclarationError: with the reason, or the nearest name.
    """
    for name in settings:
        if name in refused:
            raise DeclarationError(f"{what}: leave the setting '{name}' out: {refused[name]}")
        if name not in known and (near := get_close_matches(name.lower(), known, 1, MISSPELT)):
            raise DeclarationError(
                f"{what}: Kafka's client has no setting '{name}'; did you mean '{near[0]}'?"
            )


def require_kafka_client(what: str) -> None:
    """Raise RivermarkError where Kafka's client is not installed; `what` says what needs it."""
    if find_spec("confluent_kafka") is None:
        raise RivermarkError(f"{what} needs Kafka's client: pip install 'rivermark[kafka]'")


def kafka_settings(brokers: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a client of Kafka. A value `$NAME` is that of the environment variable.

    Raises:
        RivermarkError: a variable that is named is not set.
    """
    return resolved_settings("Kafka", {"bootstrap.servers": brokers, **settings})
