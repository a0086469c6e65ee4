"""Spark finds every row of our files by every bound, beside files of delta-rs."""

from __future__ import annotations

import math
import random
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType

from rivermark.lake.append.delta_commit import DeltaCommitter
from tests.random_tables import Condition, conditions_of, expected, flipped, random_files

TABLES = 3
KANJI = "𠮷野家"
ODD = [
    pa.table({"id": [0, 1], "text": [KANJI, "a"], "number": [math.nan, 1.0]}),
    pa.table(
        {"id": [2, 3], "text": ["z" * 32 + "\U0010ffff" * 2, None], "number": [math.inf, -0.0]}
    ),
]


def write(path: Path, files: list[pa.Table]) -> None:
    """The rows of the files as commits of this process, and the first again by delta-rs.

    All but the first file are one commit.
    """
    write_deltalake(str(path), files[0].schema.empty_table())
    committer = DeltaCommitter(str(path))
    assert committer.append(files[0], {})
    writer = committer.files()
    assert writer is not None
    adds = [add for rows in files[1:] for add in writer.write(rows)]
    assert committer.append_files(adds, {})
    write_deltalake(str(path), files[0], mode="append")


def search(spark: SparkSession, path: Path, conditions: list[Condition]) -> list[list[int]]:
    """The numbers of the rows that Spark finds by each condition, ascending; one job for all."""
    frame = spark.read.format("delta").load(str(path))
    parts = [
        frame.filter(filter_of(frame, condition)).select(F.lit(i).alias("i"), "id")
        for i, condition in enumerate(conditions)
    ]
    found: list[list[int]] = [[] for _ in conditions]
    for row in reduce(DataFrame.union, parts).collect():
        found[row["i"]].append(row["id"])
    return [sorted(ids) for ids in found]


def filter_of(frame: DataFrame, condition: Condition) -> Column:
    """A condition as Spark has it, of numbers only."""
    name = "`" + condition.column + "`"
    kind = frame.select(name).schema[0].dataType
    column, value = F.col(name), F.lit(condition.value).cast(kind)
    where: Column = condition.compare(column, value)
    return where & ~F.isnan(column) if isinstance(kind, DoubleType | FloatType) else where


def assert_found(
    spark: SparkSession, path: Path, files: list[pa.Table], conditions: list[Condition]
) -> None:
    """Write the files, and look for the rows of each condition."""
    write(path, files)
    for condition, found in zip(conditions, search(spark, path, conditions), strict=True):
        assert found == expected([*files, files[0]], condition), condition


@pytest.mark.long
def test_spark_finds_every_row_of_our_files(spark: SparkSession, tmp_path: Path) -> None:
    for seed in range(TABLES):
        dice = random.Random(seed)
        files = random_files(dice)
        conditions = list(conditions_of(files, dice))
        chosen = dice.sample(conditions, min(8, len(conditions)))
        assert_found(spark, tmp_path / str(seed), files, chosen)
    odd_ones = [c for c in conditions_of(ODD, random.Random(1)) if c.column != "id"]
    assert_found(spark, tmp_path / "odd", ODD, odd_ones)
    # NaN is a value like others there, the greatest; the file of delta-rs denies to have it.
    odd = spark.read.format("delta").load(str(tmp_path / "odd"))
    for where in ("number = double('NaN')", "number > double('Infinity')"):
        assert sorted(row["id"] for row in odd.where(where).collect()) == [0]


@pytest.mark.long
def test_spark_tells_a_flipped_bit_of_a_page(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": range(50), "v": [f"text {i}" for i in range(50)]})
    write_deltalake(str(tmp_path), rows.schema.empty_table())
    assert DeltaCommitter(str(tmp_path)).append(rows, {})
    file = next(tmp_path.glob("*.parquet"))
    raised = 0
    for damaged in flipped(file.read_bytes(), random.Random(1), 10):
        file.write_bytes(damaged)
        try:
            found = spark.read.format("delta").load(str(tmp_path)).orderBy("id").toArrow()
            assert found.to_pylist() == rows.to_pylist()
        except (PySparkException, Py4JJavaError):
            raised += 1
    assert raised > 4
    assert DeltaTable(str(tmp_path)).version() == 1
