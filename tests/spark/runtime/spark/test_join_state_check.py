"""A join of events: its inputs come in step, and the driver commits what is small."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from rivermark import Stream, Table, Topology
from rivermark.lake.schema import create_table
from rivermark.runtime.query import backlog
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings

pytestmark = pytest.mark.spark

AT = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = StructType([StructField("id", LongType()), StructField("at", TimestampType())])
LEFT, RIGHT, BOTH = (
    Table(name=f"test/{name}", schema=SCHEMA, description=name, event_time="at")
    for name in ("left", "right", "both")
)


def pairs(left: DataFrame, right: DataFrame) -> DataFrame:
    """Rows of one id within a minute of each other."""
    other = right.select(F.col("id").alias("other"), F.col("at").alias("then"))
    near = F.expr("then BETWEEN at - INTERVAL 1 MINUTE AND at + INTERVAL 1 MINUTE")
    return left.join(other, (F.col("id") == F.col("other")) & near).select("id", "at")


JOINED = Stream(
    name="test/both",
    reads=(LEFT, RIGHT),
    build=pairs,
    writes=BOTH,
    description="Pairs.",
    group="test",
    volume="events",
    lateness=timedelta(0),
)


def commit(settings: Settings, table: Table, rows: int, files: int) -> None:
    """Commit rows a second apart, a part of them in each file."""
    lake = settings.lake()
    create_table(lake, table)
    kinds = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    for first in range(0, rows, rows // files):
        ids = range(first, first + rows // files)
        columns = {"id": ids, "at": [AT + timedelta(seconds=n) for n in ids]}
        write_deltalake(lake.path(table), pa.table(columns, schema=kinds), mode="append")


@pytest.mark.long
def test_small_batches_are_committed_by_the_driver_and_no_row_is_lost_between_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(home=tmp_path)
    commit(settings, LEFT, 1200, 12)
    commit(settings, RIGHT, 1200, 4)
    monkeypatch.setattr(backlog, "BATCH_BYTES", 6000)
    monkeypatch.setattr(backlog, "LEAST_BYTES", 1)

    done = run_bounded(spark, settings, Topology([JOINED]), [JOINED], run_id="r")

    table = DeltaTable(settings.lake().path(BOTH))
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [*range(1200)]
    assert done[JOINED.name].batches > 2
    writes = [c for c in table.history() if c["operation"] == "WRITE"]
    assert {c["engineInfo"].split(":")[0] for c in writes} == {"rivermark"}
