"""Declarations of a sink to a topic: what is refused, without a broker."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from rivermark import DeclarationError, RivermarkError
from rivermark.lake.lake import Lake
from rivermark.sinks import KafkaSink
from tests.unit.sinks.conftest import FARES, context, fares

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def test_columns_that_the_table_does_not_have_or_that_hold_no_time_are_refused() -> None:
    with pytest.raises(DeclarationError, match="no column 'moment'"):
        KafkaSink(topic="fares", timestamp="moment").check(FARES)
    with pytest.raises(DeclarationError, match=r"table 'test/fares': .* 'ride' is not a timestamp"):
        KafkaSink(topic="fares", timestamp="ride").check(FARES)
    KafkaSink(topic="fares", timestamp="at").check(FARES)
    assert KafkaSink(topic="fares").described() == (
        "Kafka topic fares of 127.0.0.1:9092: exactly once, by a transaction that holds rows and "
        "batch; read committed messages only; a recompute skips"
    )


def test_a_value_that_does_not_fit_is_named_with_its_sink_and_line() -> None:
    with pytest.raises(
        DeclarationError, match=r"sink 'fares': `key` is one text .*_kafka\.py, line"
    ):
        KafkaSink(topic="fares", key="ride")  # type: ignore[arg-type]
    with pytest.raises(
        DeclarationError, match=r"sink 'fares': it has no `keys`; did you mean 'key'"
    ):
        KafkaSink(topic="fares", keys=("ride",))  # type: ignore[call-arg]


def test_writing_without_the_client_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, where = KafkaSink(topic="fares"), context(Lake(str(tmp_path)))
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(
        RivermarkError, match=r"writing to Kafka topic fares .*'rivermark\[kafka\]'"
    ):
        sink.open(where)


def test_a_fatal_error_amidst_reports_of_deliveries_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    where = context(Lake(str(tmp_path)))
    writer = KafkaSink(topic="fares").open(where)
    monkeypatch.setattr(writer, "last", lambda: None)

    def report(*_: object) -> None:
        fenced = kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._FENCED))
        raise SystemError("code returned a result with an exception set") from fenced

    monkeypatch.setattr(writer, "_send", report)
    with pytest.raises(RivermarkError, match=r"'fares'.*another run of this stream"):
        writer.write(fares((1, 1.0)), where.origin.batch(0))


def test_an_error_of_the_brokers_is_named_for_its_own_batch_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    where = context(Lake(str(tmp_path)))
    writer = cast(Any, KafkaSink(topic="fares").open(where))
    monkeypatch.setattr(writer, "last", lambda: None)
    away = kafka.KafkaError(kafka.KafkaError._ALL_BROKERS_DOWN, "all brokers are away")

    def time_out(*_: object) -> None:
        raise writer._too_slow("5 messages were not taken")

    def lose_brokers(*_: object) -> None:
        writer._note(away)
        time_out()

    for send, cause in ((lose_brokers, ": all brokers are away"), (time_out, "")):
        monkeypatch.setattr(writer, "_send", send)
        with pytest.raises(RivermarkError, match=f"not taken within 60 s{cause}$"):
            writer.write(fares((1, 1.0)), where.origin.batch(0))


def test_a_null_is_no_key_and_several_columns_are_a_list(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    where = context(Lake(str(tmp_path)))
    keys = {
        ("ride",): ({"ride": None}, None),
        ("fare",): ({"fare": "null"}, b"null"),
        ("gone",): ({"gone": False}, b"false"),
        ("ride", "fare"): ({"ride": None, "fare": 1.5}, b"[null,1.5]"),
    }
    for key, (row, expected) in keys.items():
        writer = cast(Any, KafkaSink(topic="fares", key=key).open(where))
        assert writer._key_of(row) == expected


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("+10000-01-01T00:00:00Z", r"\+10000-01-01T00:00:00Z"),
        (EPOCH, r"1970-01-01 00:00:00\+00:00"),
        (EPOCH - timedelta(microseconds=1), "1969-12-31 23:59:59.999999"),
    ],
)
def test_a_timestamp_that_no_message_can_have_refuses_its_row_by_its_key(
    tmp_path: Path, at: datetime | str, said: str
) -> None:
    pytest.importorskip("confluent_kafka")
    where = context(Lake(str(tmp_path)))
    writer = cast(Any, KafkaSink(topic="fares", key=("ride",), timestamp="at").open(where))
    named = rf"'fares'.*row with key 7 \(2 bytes\): its timestamp is {said}.*; the column"
    with pytest.raises(RivermarkError, match=named):
        writer._try("write", lambda: writer._produce({"ride": 7, "at": at}, b"{}", {}))


def test_m025_of_rows_that_a_compacted_topic_refuses_the_one_without_a_key_is_named(
    tmp_path: Path,
) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    from rivermark.sinks.kafka_errors import RowRefused

    writer = cast(Any, KafkaSink(topic="fares").open(context(Lake(str(tmp_path)))))
    invalid = kafka.KafkaError(kafka.KafkaError.INVALID_RECORD)
    writer._refused = [RowRefused(invalid, None, 8), RowRefused(invalid, b"a", 69)]
    worst = writer._worst()
    assert worst.row.startswith("the row without a key (8 bytes): a compacted topic needs one")
