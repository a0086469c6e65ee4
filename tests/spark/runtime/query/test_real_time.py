"""What a query in real time does before it reads its topic, and what it sends; without a broker."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermark import Output, Table
from rivermark.model.errors import KeysNotUnique
from rivermark.model.json_text import json_text
from rivermark.runtime.query.real_time import RealTimeQuery, key_of, session_of, value_of
from rivermark.runtime.query.static_tables import StaticTables
from rivermark.settings import Settings
from rivermark.sinks import RealTimeSink
from rivermark.sinks.python_rows import python_rows
from rivermark.sinks.real_time import real_time_of
from rivermark.sources import KafkaSource
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import READINGS, run
from tests.spark.runtime.query.test_lookups import DUMP, place, placed

pytestmark = pytest.mark.spark

COLUMNS = (
    "id long, amount decimal(38,20), at timestamp, day date, bytes binary, ratio double, "
    "one struct<amount: decimal(9,2), note: string, more: struct<amount: decimal(4,1)>>, "
    "several array<struct<amount: decimal(9,2)>>, plain array<decimal(9,2)>, "
    "by_name map<string, decimal(9,2)>"
)
ROWS: list[tuple[Any, ...]] = [
    (
        1,
        Decimal("0.00000000000000000001"),
        datetime(2026, 1, 1, 10, 0, 0, 250000, tzinfo=UTC),
        date(2026, 1, 1),
        bytes(range(90)),
        0.1,
        (Decimal("1.50"), "ä", (Decimal("2.5"),)),
        [(Decimal("0.10"),), None, (None,)],
        [Decimal("3.00")],
        {"a": Decimal("4.25"), "b": None},
    ),
    (2, *[None] * 9),
    (3, Decimal(5), None, None, b"", float("nan"), (None, None, None), [], [], {}),
]


def test_a_value_is_the_object_that_a_kafka_sink_sends_with_decimals_as_texts_however_deep(
    spark: SparkSession,
) -> None:
    table = Table(name="test/sent", schema=COLUMNS, description="All that can be sent.")
    frame = spark.createDataFrame(ROWS, table.schema)

    sent = [json.loads(row.value) for row in frame.select(value_of(table).alias("value")).collect()]

    # Of a map a `KafkaSink` makes a list of pairs.
    assert [row.pop("by_name") for row in sent] == [{"a": "4.25", "b": None}, None, {}]
    rows = frame.drop("by_name").toArrow()
    expected = [json.loads(json_text(row)) for row in python_rows(rows)]
    for row in (*sent, *expected):
        row["at"] = row["at"] and datetime.fromisoformat(row["at"])
        row["amount"] = row["amount"] and Decimal(row["amount"])
    assert sent == expected
    assert sent[0]["one"] == {"amount": "1.50", "note": "ä", "more": {"amount": "2.5"}}


def test_a_key_is_one_text_or_a_list_of_texts(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "a", None)], "id long, name string, none string")

    keys = frame.select(
        key_of(("id",)).alias("one"), key_of(("id", "name", "none")).alias("all")
    ).collect()

    assert keys == [("1", '["1","a",null]')]


def test_a_static_table_that_would_repeat_rows_is_refused_before_a_message_is_sent(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    landing.put("places/first.json", place("s1", 0, "kitchen"), place("s1", 1, "hall"))
    run(spark, settings, DUMP)
    readings = replace(READINGS, source=KafkaSource(topics="readings", brokers="127.0.0.1:9"))
    stream = replace(
        placed(DUMP),
        reads=(readings,),
        writes=(
            Output(
                placed(DUMP).tables[0],
                sinks=(RealTimeSink(topic="placed", every=timedelta(seconds=5)),),
            ),
        ),
    )
    real_time = real_time_of(stream)
    assert real_time is not None
    lake = settings.lake()
    checkpoint = str(settings.home / "checkpoint")
    query = RealTimeQuery(spark, stream, real_time, StaticTables(lake, stream), lake, checkpoint)

    with pytest.raises(KeysNotUnique, match="sensor=s1 2 times"):
        query.settle()


def test_its_session_has_the_settings_of_the_run_but_for_the_choice_of_files(
    spark: SparkSession,
) -> None:
    own, skipping = session_of(spark), "spark.databricks.delta.stats.skipping"

    assert (own.conf.get(skipping), spark.conf.get(skipping)) == ("false", "true")
    for name in ("spark.sql.session.timeZone", "spark.sql.extensions", "spark.scheduler.mode"):
        assert own.conf.get(name) == spark.conf.get(name)
