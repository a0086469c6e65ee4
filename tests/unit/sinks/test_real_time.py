"""Declarations of a sink in real time: what is refused, without a broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from rivermark import Contract, DeclarationError, Field, Ingest, Output, Stream
from rivermark.model.watermark import WATERMARK_AFTER
from rivermark.sinks import RealTimeSink
from rivermark.sinks.real_time import real_time_of
from rivermark.sources import FileSource, KafkaSource, PerProducer
from tests.unit.sinks.conftest import FARES

SINK = RealTimeSink(topic="fares")
RIDES = Ingest(
    name="test/rides",
    source=KafkaSource(topics="rides"),
    contract=Contract(fields=(Field("at", "timestamp", required=True),), event_time="at"),
    lateness=timedelta(seconds=1),
    description="Rides.",
    group="test",
)


def build(rides: DataFrame) -> DataFrame:
    return rides


def stream(**values: Any) -> Stream:
    declared: Mapping[str, Any] = {
        "reads": (RIDES,),
        "build": build,
        "writes": (Output(FARES, sinks=(SINK,)),),
        "group": "test",
    }
    return Stream(**{**declared, **values})


def test_a_sink_in_real_time_says_what_it_guarantees_and_is_found() -> None:
    assert SINK.described() == (
        "Kafka topic fares of 127.0.0.1:9092 in real time: at least once, before the table has "
        "it; after a kill again, with the same key; a recompute skips"
    )
    declared = stream()
    assert real_time_of(declared) == (RIDES, declared.outputs[0], SINK)
    assert real_time_of(RIDES) is None
    assert real_time_of(stream(writes=FARES)) is None


def test_batches_shorter_than_sparks_and_keys_that_are_none_are_refused() -> None:
    with pytest.raises(DeclarationError, match=r"`every` is 0:00:04, .* allows 0:00:05"):
        RealTimeSink(topic="fares", every=timedelta(seconds=4))
    with pytest.raises(DeclarationError, match="no column 'moment'"):
        RealTimeSink(topic="fares", key=("moment",)).check(FARES)
    with pytest.raises(DeclarationError, match="give the table keys, or the sink a key"):
        SINK.check(replace(FARES, keys=()))


@pytest.mark.parametrize(
    "values",
    [
        {"reads": (replace(RIDES, source=FileSource(folder="rides")),)},
        {"reads": (RIDES, replace(RIDES, name="test/more")), "build": lambda a, b: a},
        {"reads": (RIDES.admitted,), "lateness": timedelta(seconds=1)},
    ],
)
def test_a_stream_is_refused_that_does_not_read_one_topic(values: Mapping[str, Any]) -> None:
    with pytest.raises(
        DeclarationError, match="in real time it must read one input, an ingest of a"
    ):
        stream(**values)


@pytest.mark.parametrize(
    "writes",
    [
        (Output(FARES, sinks=(SINK, replace(SINK, topic="more"))),),
        (
            Output(FARES, sinks=(SINK,)),
            Output(replace(FARES, name="test/more"), sinks=(replace(SINK, topic="more"),)),
        ),
    ],
)
def test_a_second_sink_in_real_time_is_refused_as_no_query_would_send_its_rows(
    writes: tuple[Output, ...],
) -> None:
    with pytest.raises(DeclarationError, match="has 2 sinks in real time, but only one"):
        stream(writes=writes)


def test_a_table_whose_rows_carry_their_watermark_is_refused_as_no_message_does() -> None:
    rides = replace(RIDES, watermark=PerProducer(idle=timedelta(minutes=1)))
    assert real_time_of(stream(reads=(rides,))) is not None
    carrying = replace(FARES, schema=StructType([*FARES.schema.fields, WATERMARK_AFTER]))
    with pytest.raises(
        DeclarationError, match=f"no message carries _watermark_after, a column of '{FARES.name}'"
    ):
        stream(reads=(rides,), writes=(Output(carrying, sinks=(SINK,)),))


def test_a_refresh_is_refused() -> None:
    with pytest.raises(DeclarationError, match="real time keeps no state"):
        stream(kind="refresh")


@pytest.mark.parametrize(
    "name",
    [
        *("group.id", "enable.auto.commit", "auto.offset.reset", "isolation.level"),
        *("acks", "kafka.acks", "enable.idempotence", "transactional.id", "retries"),
        *("value.deserializer", "key.serializer", "interceptor.classes", "bootstrap.servers"),
    ],
)
def test_m045_settings_that_undo_what_is_promised_are_refused(name: str) -> None:
    with pytest.raises(DeclarationError, match=r"sink 'fares': leave the setting '.*' out: "):
        RealTimeSink(topic="fares", settings={name: "x"})


def test_m045_settings_of_javas_client_are_taken() -> None:
    for name in ("security.protocol", "ssl.truststore.location", "fetch.max.wait.ms", "linger.ms"):
        RealTimeSink(topic="fares", settings={name: "x"})
