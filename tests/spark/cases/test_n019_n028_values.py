"""Cases N019 to N028: units, decimal commas and times as contracts judge them.

The readers alone: tests/spark/model/test_field_readers.py.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from assets.readings.library_messages import LIBRARY_MESSAGE
from rivermark import Contract, Field, readers
from simulator.landing.json_lines import Value
from tests.spark.helpers.contract_problems import problems
from tests.spark.helpers.sensors import READING

pytestmark = pytest.mark.spark

MESSAGE: dict[str, Value] = {"arrival_ms": 1163000400000, "node": 1, "sequence": 7}


def test_n019_a_value_with_a_unit_is_unreadable(spark: SparkSession) -> None:
    ratio = Contract(fields=(*READING.fields[:2], Field("ratio", "double")), event_time="at")
    values = ("20.5F", "20.5d", "0x1p3", "20.5", 20.5)
    row: dict[str, Value] = {"sensor": "s", "at": "2024-03-01T10:00:00Z"}
    rows = [row | {"ratio": value} for value in values]

    assert problems(spark, ratio, rows) == [*3 * [["unreadable_ratio"]], [], []]


def test_n022_a_point_beside_decimal_commas_is_unreadable(spark: SparkSession) -> None:
    rows = [
        MESSAGE | {"temperature": "1.021"},
        MESSAGE | {"par": "1.000"},
        MESSAGE | {"temperature": "1.020,5"},
        MESSAGE | {"temperature": "21,05", "par": "1\u00a0000", "voltage": "2"},
    ]

    assert problems(spark, LIBRARY_MESSAGE, rows) == [
        ["unreadable_temperature"],
        ["unreadable_par"],
        ["unreadable_temperature"],
        [],
    ]


def test_n024_a_time_in_another_unit_is_refused(spark: SparkSession) -> None:
    units = (1163000460, 1163000460000, 1163000460000000, 1163000460000000000)
    rows = [MESSAGE | {"arrival_ms": ms} for ms in (*units, 1_000_000_000_000)]
    unreadable = ["unreadable_event_time"]

    assert problems(spark, LIBRARY_MESSAGE, rows) == [
        unreadable,
        [],
        unreadable,
        unreadable,
        ["event_time_too_early"],
    ]


def test_n028_times_before_the_first_watermark_are_refused_unless_declared(
    spark: SparkSession,
) -> None:
    texts = ("1959-12-31T23:59:00Z", "1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z",
             "0009-12-31T00:00:00Z")  # fmt: skip
    row: dict[str, Value] = {"sensor": "s", "temperature": 1}
    rows = [row | {"at": at} for at in texts]
    early, impossible = ["event_time_too_early"], ["event_time_impossible"]

    assert problems(spark, READING, rows) == [early, early, [], impossible]
    dumps = replace(READING, earliest=datetime(1960, 1, 1, tzinfo=UTC))
    assert problems(spark, dumps, rows) == [early, [], [], impossible]


def test_a_value_that_its_field_cannot_hold_is_unreadable_whatever_reads_it(
    spark: SparkSession,
) -> None:
    fields = (
        *READING.fields[:2],
        Field("small", "int", read=readers.integer()),
        Field("price", "decimal(4,2)", read=readers.sql("CAST(text AS DECIMAL(12,2))")),
    )
    at = datetime(2024, 3, 1, 10, tzinfo=UTC) + timedelta(minutes=1)
    row: dict[str, Value] = {"sensor": "s", "at": at.isoformat()}
    rows = [row | {"small": 3000000000}, row | {"price": "100.00"}, row | {"small": 3, "price": 9}]

    assert problems(spark, Contract(fields=fields, event_time="at"), rows) == [
        ["unreadable_small"],
        ["unreadable_price"],
        [],
    ]
