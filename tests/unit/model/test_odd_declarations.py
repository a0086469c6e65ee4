"""Declarations that can only be a mistake are refused in a sentence that says what to write."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import pytest

from rivermark import Contract, Daily, DeclarationError, Domain, Field, columns
from rivermark.operators import SlidingWindow
from rivermark.restart import GrowingDelay
from rivermark.sinks import FileSink, KafkaSink, RealTimeSink, WebhookSink
from rivermark.sources import FileSource, KafkaSource

FAR: Final = 2999
SHOP: Final = Domain("shop", first_day=date(2024, 1, 1))
FIELDS: Final = (
    Field("id", "long", required=True),
    Field("at", "timestamp", required=True),
)


def contract(**options: Any) -> Contract:
    return Contract(fields=FIELDS, event_time="at", **options)


ODD: Final[dict[str, tuple[Callable[[], object], str]]] = {
    "no brokers": (lambda: KafkaSource(topics="a", brokers=""), "the Kafka source of a: '' names"),
    "brokers by HTTP": (
        lambda: KafkaSource(topics="a", brokers="http://kafka:9092"),
        "'http://kafka:9092' names no brokers; write host:port",
    ),
    "a variable without a name": (lambda: KafkaSink(topic="a", brokers="$"), r"'\$' names no brok"),
    "a comma too many": (
        lambda: RealTimeSink(topic="a", brokers="a:1,"),
        "'a:1,' names no brokers",
    ),
    "a topic twice": (lambda: KafkaSource(topics=("a", "b", "a")), "topic 'a' is named twice"),
    "a start elsewhere": (
        lambda: KafkaSource(topics="a", start={"b": {0: 1}}),
        "start names the topic 'b', which is not read; it reads a",
    ),
    "an offset below 0": (
        lambda: KafkaSource(topics="a", start={"a": {0: -2}}),
        "start of topic 'a': .* write 'earliest' or 'latest'",
    ),
    "a delimiter that is a quote": (
        lambda: FileSource(folder="a", format="csv", delimiter='"'),
        "ends a text or a line; write",
    ),
    "a delimiter that is a line": (
        lambda: FileSource(folder="a", format="csv", delimiter="\n"),
        "ends a text or a line; write",
    ),
    "a pattern that is a regular expression": (
        lambda: FileSource(folder="a", pattern=r".*\.json"),
        r"is no regular expression: `\*` is any text; write one such as '\*\.json'",
    ),
    "a key twice in a contract": (lambda: contract(keys=("id", "id")), "`keys` name 'id' twice"),
    "a key twice in a table": (
        lambda: SHOP.table("shop/t", columns("id long, at timestamp"), keys=("id", "id")),
        "table 'shop/t': `keys` name 'id' twice",
    ),
    "earliest to come": (
        lambda: contract(earliest=datetime(FAR, 1, 1, tzinfo=UTC)),
        "is to come: every row before it would be quarantined",
    ),
    "a domain of next century": (
        lambda: Domain("shop", first_day=date(FAR, 1, 1)),
        "domain 'shop': the first day 2999-01-01 is more than a year from now",
    ),
    "days of next century": (
        lambda: Daily("at", date(FAR, 1, 1)),
        "days 'at': the first day 2999-01-01 .* write that of the first rows",
    ),
    "an event in a million windows": (
        lambda: SlidingWindow(timedelta(days=365), timedelta(seconds=1)),
        "an event would lie in 31,536,000 of them, each a row; at most 10,000",
    ),
    "a delay that has no end": (lambda: GrowingDelay(factor=math.inf), "a finite factor"),
    "files among tables": (lambda: FileSink(folder=""), "folder '' .* write a folder of their own"),
    "files above the lake": (lambda: FileSink(folder="../out"), "without '..'"),
    "a header of two lines": (
        lambda: WebhookSink(url="http://a/x", headers={"X-A": "b\nc"}),
        "no header can be 'X-A'.* line breaks",
    ),
    "a header with a blank": (
        lambda: WebhookSink(url="http://a/x", headers={"X A": "b"}),
        "no header can be 'X A'",
    ),
    "a server with a blank": (lambda: WebhookSink(url="http://a b/x"), "name a server"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_can_only_be_a_mistake_is_refused(name: str) -> None:
    made, said = ODD[name]
    with pytest.raises(DeclarationError, match=said):
        made()


def test_what_may_be_meant_is_taken() -> None:
    KafkaSource(topics="a")
    KafkaSource(topics="a", brokers="kafka")
    KafkaSource(topics="a", brokers="$SHOP_KAFKA, [::1]:9092,SASL_SSL://kafka.example:9093")
    KafkaSource(pattern="a.*", start={"a1": {0: 0}})
    FileSource(folder="a", format="csv", delimiter="\t", pattern="[a-z]*.csv")
    FileSink(folder="s3://bucket/exports")
    Domain("shop", first_day=datetime.now(UTC).date() + timedelta(days=30))
    SlidingWindow(timedelta(hours=1), timedelta(seconds=1))
    WebhookSink(url="https://a/x", headers={"X-Shop": "$SHOP"})
