"""Where reading in real time begins, and what it does not read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
from pyspark.sql import SparkSession

from rivermark import DeclarationError
from rivermark.ingest.real_time import members
from rivermark.ingest.real_time.rows import real_time_rows
from rivermark.sources import ConsumerGroup, KafkaSource
from tests.unit.sinks.test_real_time import RIDES


class Options(Exception):
    """The options of Spark's reader, instead of its rows."""


class Reader:
    """Stands for a session's reader, also that of a format."""

    def format(self, _: str) -> Reader:
        return self

    def options(self, **options: str) -> Any:
        raise Options(options)


def options_of(**source: Any) -> dict[str, str]:
    ingest = replace(RIDES, source=KafkaSource(topics=("rides", "more"), **source))
    session = SimpleNamespace(readStream=Reader())
    with pytest.raises(Options) as raised:
        real_time_rows(cast(SparkSession, session), ingest, {"security.protocol": "SSL"})
    return cast(dict[str, str], raised.value.args[0])


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("earliest", {"startingOffsets": "earliest"}),
        ({"rides": {0: 7}}, {"startingOffsets": '{"rides": {"0": 7}}'}),
        (
            datetime(2026, 1, 1, tzinfo=UTC),
            {
                "startingTimestamp": "1767225600000",
                "startingOffsetsByTimestampStrategy": "latest",
            },
        ),
    ],
)
def test_reading_starts_where_the_ingest_does(start: Any, expected: dict[str, str]) -> None:
    assert options_of(start=start) == {
        "subscribe": "rides,more",
        **expected,
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
        "kafka.security.protocol": "SSL",
    }


class Values:
    """Stands for Spark's functions: columns are the values of one message."""

    columns: ClassVar[dict[str, Any]] = {"_json": {"_topic": "said", "fare": "1"}, "topic": "rides"}

    @classmethod
    def col(cls, name: str) -> Any:
        return cls.columns[name]

    @staticmethod
    def coalesce(*values: Any) -> Any:
        return next((value for value in values if value is not None), None)


def test_what_the_broker_says_counts_before_a_member_of_that_name_as_for_admission(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(members, "F", Values)
    assert [members.text_of(name) for name in ("_topic", "fare")] == ["rides", "1"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (KafkaSource(topics="rides", format="text"), "only JSON messages of a KafkaSource"),
        (KafkaSource(topics="rides", tombstones="rows"), "tombstones are skipped, so the source"),
        (KafkaSource(topics="rides", key_format="long"), "keys can only be read as text"),
        (
            KafkaSource(topics="rides", start=ConsumerGroup("old")),
            "it cannot be that of the consumer group 'old'",
        ),
    ],
)
def test_what_spark_cannot_read_so_is_refused(source: KafkaSource, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        real_time_rows(cast(SparkSession, None), replace(RIDES, source=source), {})
