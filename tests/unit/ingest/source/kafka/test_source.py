"""Declarations of topics: what is refused, without a broker."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

import pytest

from rivermark import DeclarationError, RivermarkError
from rivermark.model.declared import place_of
from rivermark.sources import ConsumerGroup, KafkaSource


def test_declarations_that_cannot_work_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeclarationError, match="either `topics` or a `pattern` of their names"):
        KafkaSource(topics="a", pattern="b")
    with pytest.raises(DeclarationError, match="no time zone"):
        KafkaSource(topics="a", start=datetime(2024, 3, 1))  # noqa: DTZ001
    with pytest.raises(DeclarationError, match="at least 1"):
        KafkaSource(topics="a", max_messages=0)
    secret = KafkaSource(topics="a", settings={"sasl.password": "$SHOP_PASSWORD"})
    with pytest.raises(RivermarkError, match="environment variable SHOP_PASSWORD"):
        secret.client_settings()
    monkeypatch.setenv("SHOP_PASSWORD", "hidden")
    assert secret.client_settings()["sasl.password"] == "hidden"
    assert "hidden" not in repr(secret)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"start": "newest"}, "source 'a': `start` is .*'newest'; expected 'earliest', 'latest', "),
        (
            {"format": "avro"},
            "source 'a': `format` is .*'avro'; expected 'json', 'text', 'bytes', an Avro or",
        ),
        ({"isolation": "none"}, "`isolation` is .*; expected 'read_committed' or 'read_uncommitt"),
        ({"tombstones": "drop"}, "`tombstones` is .*'drop'; expected 'skip' or 'rows'"),
        ({"max_messages": "5"}, "source 'a': `max_messages` is the text '5'; expected a whole num"),
        ({"topic": "a"}, r"it has no `topic`; did you mean 'topics'\?"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_source_and_line(
    values: dict[str, Any], fault: str
) -> None:
    with pytest.raises(DeclarationError, match=rf"{fault}.*test_source\.py, line \d+"):
        KafkaSource(**{"topics": "a", **values})


def test_a_consumer_group_without_a_name_is_refused_with_its_line() -> None:
    with pytest.raises(
        DeclarationError, match=r"a consumer group needs a name.*test_source\.py, li"
    ):
        ConsumerGroup("")


def test_topics_may_be_a_list_and_a_source_knows_where_it_was_declared() -> None:
    source = KafkaSource(topics=["a", "b"])  # type: ignore[arg-type]
    assert source == KafkaSource(topics=("a", "b"))
    assert hash(source) == hash(KafkaSource(topics=("a", "b")))
    assert place_of(source) is not None


def test_reading_without_the_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    source = KafkaSource(topics="fares")
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(RivermarkError, match=r"reading Kafka topic `fares` .*'rivermark\[kafka\]'"):
        source.open("")
