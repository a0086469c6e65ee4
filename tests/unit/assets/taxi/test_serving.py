"""Results go elsewhere where the environment names a place; else their page says what to start."""

from __future__ import annotations

import pytest

from assets.taxi.ingest import BROKERS
from assets.taxi.serving import DATABASE, TOPIC, activity_sinks, delivery, winners_sinks
from assets.taxi.tips import HOURLY_WINNERS
from assets.taxi.zone_activity import ZONE_ACTIVITY
from rivermark.sinks import KafkaSink, PostgresUpsert


def test_winners_go_to_a_topic_only_where_it_and_its_brokers_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(BROKERS, raising=False)
    monkeypatch.setenv(TOPIC, "winners")
    assert winners_sinks() == ()
    monkeypatch.setenv(BROKERS, "127.0.0.1:9092")
    [sink] = winners_sinks()

    assert isinstance(sink, KafkaSink)
    assert (sink.topic, sink.brokers) == ("winners", "$TAXI_KAFKA")
    sink.check(HOURLY_WINNERS.tables[0])


def test_the_activity_of_zones_is_served_where_a_database_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(DATABASE, raising=False)
    assert activity_sinks() == ()
    monkeypatch.setenv(DATABASE, "postgresql://serving@127.0.0.1/shop")
    [sink] = activity_sinks()

    assert isinstance(sink, PostgresUpsert)
    assert (sink.key, sink.version) == (("zone",), "window_end")
    sink.check(ZONE_ACTIVITY.tables[0])


def test_a_page_says_where_rows_go_or_what_to_start() -> None:
    assert delivery((), "topic", "make demo-kafka") == "In no topic yet: `make demo-kafka` has one."
    for stream, start in (
        (HOURLY_WINNERS, "make demo-kafka"),
        (ZONE_ACTIVITY, "make demo-postgres"),
    ):
        assert start in stream.tables[0].description
