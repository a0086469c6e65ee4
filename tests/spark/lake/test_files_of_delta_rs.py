"""Spark finds NaN in files that delta-rs wrote for us, and refuses those that are damaged."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.delta import delta_table, read_delta
from rivermark.lake.locks import commit_lock
from rivermark.lake.unbounded import writer_options

pytestmark = pytest.mark.spark

FIRST = pa.table({"id": [1, 2], "v": [1.0, 2.0], "p": [{"x": 1.0}, {"x": math.nan}]})
SECOND = pa.table({"id": [3, 4], "v": [math.nan, 3.0], "p": [{"x": 1.0}, {"x": 2.0}]})


def test_nan_is_found_and_a_flipped_bit_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    write_deltalake(path, FIRST.schema.empty_table())
    assert DeltaCommitter(path).append(FIRST, {})
    before = {*tmp_path.glob("*.parquet")}
    with commit_lock(path):
        table = delta_table(path)
        write_deltalake(table, SECOND, mode="append", **writer_options(table, SECOND))
    (file,) = {*tmp_path.glob("*.parquet")} - before

    def ids(condition: str) -> list[int]:
        return sorted(row.id for row in read_delta(spark, path).where(condition).collect())

    assert ids("v = double('NaN')") == [3]
    assert ids("v > 2.5") == [3, 4]
    assert ids("p.x = double('NaN')") == [2]

    content = bytearray(file.read_bytes())
    content[10] ^= 1
    file.write_bytes(content)
    with pytest.raises((PySparkException, Py4JJavaError), match=file.name):
        ids("id > 0")
