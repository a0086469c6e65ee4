"""A lookup that is made again by Spark is the one that DuckDB makes."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from rivermark.ingest.lookup_table import LookupTable
from rivermark.ingest.plan import plan_table
from rivermark.lake.log import CommitLog
from rivermark.lake.schema import create_table
from rivermark.lake.snapshot import open_table
from rivermark.lake.system_tables import rows_of
from rivermark.settings import Settings
from tests.unit.model.declared import ingest

pytestmark = [pytest.mark.spark, pytest.mark.long]

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
LOOKUP = ingest("test/lookup", kind="lookup", keys=("id",), lateness=None)


def test_a_large_lookup_is_made_again_by_spark_alike(
    spark: SparkSession, settings: Settings
) -> None:
    lake, dice = settings.lake(), random.Random(24)
    for table in (*LOOKUP.tables, plan_table(LOOKUP)):
        create_table(lake, table)
    places = [(batch, file, row) for batch in range(3) for file in "zxa" for row in range(40)]
    versions: list[dict[str, Any]] = [
        {
            "id": dice.randrange(30),
            # So few moments that most keys have several newest ones.
            "at": NOON + timedelta(hours=dice.randrange(2)),
            "_ingest_batch": batch,
            "_file": file,
            "_row": row,
            "flags": [],
        }
        for batch, file, row in places
    ]
    plans = [
        {"arrival": batch, "name": file, "path": file, "modified_at": NOON + timedelta(minutes=n)}
        for n, (batch, file) in enumerate((b, f) for b in range(3) for f in "zxa")
        if (batch, file) != (1, "x")  # The plan of one is gone.
    ]
    for table, rows in ((LOOKUP.versions, versions), (plan_table(LOOKUP), plans)):
        write_deltalake(lake.path(table), rows_of(table, rows), mode="append")
    lookup, made = LookupTable(lake, LOOKUP), []
    for session in (None, spark):
        lookup.rebuild({"retake": "a"}, session)
        made.append(open_table(lake, LOOKUP.admitted).to_table().sort_by("id"))

    duckdb, by_spark = made
    assert by_spark == duckdb
    assert duckdb["id"].to_pylist() == sorted({each["id"] for each in versions})
    newest = CommitLog(lake.path(LOOKUP.admitted)).latest()
    assert newest is not None
    assert newest.metadata == {"retake": "a"}
