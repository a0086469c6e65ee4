"""Rules that are Spark columns: the same verdicts as in SQL, after those in SQL."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from rivermark import Contract, Field, Rule
from rivermark.ingest.parse.problems import PROBLEMS
from rivermark.ingest.parse.rules import (
    WHOLE,
    ContractRules,
    column_rules_of,
    with_column_rules,
)
from rivermark.model.contract import FLAGS
from rivermark.model.errors import DeclarationError
from rivermark.quality.conditions import Conditions
from rivermark.quality.spark_condition import spark_condition
from tests.oracles.edge_rows import KINDS, table

pytestmark = pytest.mark.spark

CONTRACT: Final = Contract(
    fields=(Field("id", "long", required=True), Field("fare", "decimal(12,2)")),
    rules=(
        Rule("odd", lambda: F.col("id") % 2 == 1, "flag", "By Spark."),
        Rule("large", "id > 2", "flag", "In SQL."),
        Rule("free", lambda: F.col("fare") == 0, "quarantine", "By Spark."),
        Rule("third", "id = 3", "quarantine", "In SQL."),
    ),
)


def rows() -> pa.Table:
    lists = pa.list_(pa.string())
    return pa.table(
        {
            "id": pa.array([1, 2, 3, 3], pa.int64()),
            "fare": pa.array([None, 0, 0, 0], pa.decimal128(12, 2)),
            FLAGS: pa.array([[], [], [], []], lists),
            PROBLEMS: pa.array([[], ["early"], [], ["malformed"]], lists),
            WHOLE: pa.array([True, True, True, False]),
        }
    )


def test_they_come_after_the_rules_in_sql_and_malformed_rows_are_not_asked(
    spark: SparkSession,
) -> None:
    judged = column_rules_of(spark, ContractRules(CONTRACT).added(rows()), CONTRACT)

    assert judged.schema.equals(rows().schema)
    assert judged[FLAGS].to_pylist() == [["odd"], [], ["large", "odd"], []]
    assert judged[PROBLEMS].to_pylist() == [[], ["early", "free"], ["third", "free"], ["malformed"]]


def test_they_are_the_same_over_a_data_frame(spark: SparkSession) -> None:
    frame = with_column_rules(
        spark.createDataFrame(ContractRules(CONTRACT).added(rows())), CONTRACT
    ).toArrow()
    here = column_rules_of(spark, ContractRules(CONTRACT).added(rows()), CONTRACT)
    assert frame.to_pylist() == here.to_pylist()


IN_REAL_TIME: Final = (
    "i > j",
    "n = i AND NOT b",
    "d > 180.5 OR e <= -1 OR f IS NULL",
    "abs(d) > 180 AND abs(p) >= q",
    "p NOT BETWEEN 0 AND 100.25",
    "u < -459.67",
    "x IN ('High', 'Low', 'Zo\u00eb', 'it''s', 'a\\b')",
    "i NOT IN (264, 265, NULL)",
    "x IS DISTINCT FROM w",
    "x < w",
    "CASE WHEN b THEN p WHEN c THEN q ELSE 0 END < 0",
    "coalesce(d > 1, c, false)",
    "least(p, q, 0) < 0 OR greatest(d, e) > 180",
    "t - v > INTERVAL 2 HOURS",
    "t + INTERVAL 90 MINUTES < v",
    "v - INTERVAL 3 DAYS >= t",
    "t >= TIMESTAMPTZ '2024-03-10 02:00:00-05:00'",
    "t > TIMESTAMP '2024-11-03 05:00:00'",
    "y = DATE '2024-02-29' OR y > z",
    "d = e",
    "r > 12345678901234567890123",
    "n > 9007199254740993",
    "(b AND c) IS NULL",
    "b",
    "p + q > 5 AND p - u <> 7 AND d * 0.25 > e",
    "d / e > 2",
    "null",
)


def test_what_is_written_for_real_time_says_the_same(spark: SparkSession) -> None:
    batch = table(KINDS, 1_500, seed=7)
    texts = {f"c{n}": text for n, text in enumerate(IN_REAL_TIME)}
    wanted = Conditions(texts, batch.schema).masks(batch)
    frame = spark.createDataFrame(
        batch.append_column("_place", pa.array(range(batch.num_rows), pa.int64()))
    )
    made = (
        frame.select(
            "_place",
            *(
                F.coalesce(
                    F.expr(spark_condition(text, batch.schema)).cast("boolean"), F.lit(False)
                ).alias(name)
                for name, text in texts.items()
            ),
        )
        .toArrow()
        .sort_by("_place")
    )
    for name, text in texts.items():
        assert made[name].to_pylist() == wanted[name].to_pylist(), text


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("regexp_matches(x, 'a')", "'regexp_matches' of these"),
        ("d % 2 > 1", "'%' of these"),
        ("t > '2024-01-01'", "comparison of text and time"),
        ("hour(t) > 5", "'hour' of these"),
        ("TRY_CAST(x AS INT) > 1", "cast"),
    ],
)
def test_what_is_not_evaluated_in_real_time_is_refused(text: str, part: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        spark_condition(text, table(KINDS, 1, seed=1).schema)
    said: Any = str(refused.value)
    assert said.startswith(f"Spark has no equal for a {part}")
