"""Spark and DuckDB compare days to the same numbers, hours, sums and samples."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import dataset
from pyspark.sql import SparkSession

from rivermark import Daily, Table
from rivermark.backfill.comparison import compare, compare_on_spark
from rivermark.backfill.difference import Difference
from rivermark.lake.arrow_types import arrow_schema
from tests.seeds import seeds

FIRST = date(2024, 3, 9)
LAST = FIRST + timedelta(days=2)
START = datetime(2024, 3, 9, tzinfo=UTC)
ODD = Table(
    name="test/odd",
    schema=(
        "key string, at timestamp, day date, price decimal(12,2), degrees double, n int,"
        " paired long, place struct<city: string, at: double>, tags array<string>,"
        " more map<string, int>"
    ),
    description="Odd rows.",
    event_time="at",
    keys=("key",),
    days=Daily(column="at", start=FIRST, zone="America/New_York"),
    personal=("place",),
)
BY_DATE = Table(
    name="test/by_date",
    schema=ODD.schema,
    description="Without a key.",
    days=Daily(column="day", start=FIRST),
)


def row(dice: random.Random) -> dict[str, Any]:
    at = START + timedelta(minutes=dice.randrange(5 * 24 * 60))
    return {
        "key": dice.choice([None, *(f"k{n}" for n in range(40))]),
        "at": at,
        "day": at.date(),
        "price": dice.choice([None, Decimal(dice.randrange(500)) / 100]),
        "degrees": dice.choice([None, 0.0, -0.0, 1.5, 2.25]),
        "n": dice.choice([None, 2**31 - 1, -5]),
        "paired": dice.choice([None, 2**62, 7]),
        "place": dice.choice([None, {"city": "Ulm", "at": 1.5}, {"city": None, "at": None}]),
        "tags": dice.choice([None, [], ["a", None], ["b"]]),
        "more": dice.choice([None, [("a", 1), ("b", None)], []]),
    }


def altered(dice: random.Random, rows: list[dict[str, Any]], share: float) -> list[dict[str, Any]]:
    changed = [r | {"price": Decimal("9.99")} if dice.random() < share else r for r in rows]
    kept = [r for r in changed if dice.random() >= share]
    kept += [row(dice) for r in rows if dice.random() < share]
    dice.shuffle(kept)
    return kept


def both(
    spark: SparkSession, table: Table, before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> tuple[Difference, Difference]:
    sides = [pa.Table.from_pylist(rows, arrow_schema(table.schema)) for rows in (before, after)]
    old, new = (dataset.dataset(side) for side in sides)
    here = compare(old, new, table, FIRST, LAST)
    was, now = (spark.createDataFrame(side).to(table.schema) for side in sides)
    return here, compare_on_spark(was, now, table, FIRST, LAST)


@pytest.mark.parametrize("table", [ODD, BY_DATE], ids=lambda table: table.name)
@pytest.mark.parametrize("share", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("seed", seeds(1, 3))
def test_both_engines_come_to_the_same(
    spark: SparkSession, table: Table, share: float, seed: int
) -> None:
    dice = random.Random(seed)
    rows = [row(dice) for _ in range(150)]

    here, there = both(spark, table, rows, altered(dice, rows, share))

    assert here == there
    assert here.same is (share == 0.0)
    assert not spark.catalog.listTables()


def test_a_day_without_rows_on_one_side_is_all_added(spark: SparkSession) -> None:
    dice = random.Random(1)
    rows = [row(dice) for _ in range(50)]

    here, there = both(spark, ODD, [], rows)

    assert here == there
    assert there.added > 0
    assert (there.unchanged, there.removed) == (0, 0)
