"""What a table's statistics tell: bounds and rows."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql.types import DoubleType, StructField, StructType, TimestampType

from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.snapshot import row_count
from rivermark.lake.statistics import largest, smallest
from rivermark.model.table import Table
from tests.unit.lake.conftest import NOON, RIDES, rides


def test_an_empty_or_missing_table_has_no_bounds_and_no_rows(lake: Lake, tmp_path: Path) -> None:
    for place in (lake, Lake(str(tmp_path / "elsewhere"))):
        assert smallest(place, RIDES, "at") is None
        assert largest(place, RIDES, "at") is None
        assert row_count(place, RIDES) == 0


def test_bounds_are_over_all_files(lake: Lake) -> None:
    for hours in (3, 1, 2):
        write_deltalake(
            lake.path(RIDES), rides(hours, at=NOON + timedelta(hours=hours)), mode="append"
        )

    assert smallest(lake, RIDES, "at") == NOON + timedelta(hours=1)
    assert largest(lake, RIDES, "at") == NOON + timedelta(hours=3)
    assert largest(lake, RIDES, "nothing") is None


def test_bounds_of_files_that_tell_none_are_read(lake: Lake, tmp_path: Path) -> None:
    measures = Table(
        name="test/measures",
        schema=StructType(
            [StructField("at", TimestampType()), StructField("v", DoubleType())],
        ),
        description="Measures.",
    )
    create_table(lake, measures)
    appender = DeltaCommitter(lake.path(measures))
    for hours, value in ((1, 1.0), (3, float("nan")), (2, 2.0)):
        at = pa.array([NOON + timedelta(hours=hours)], pa.timestamp("us", "UTC"))
        assert appender.append(pa.table({"at": at, "v": [value]}), {})

    assert smallest(lake, measures, "at") == NOON + timedelta(hours=1)
    assert largest(lake, measures, "at") == NOON + timedelta(hours=3)


def test_rows_are_counted_at_a_version(lake: Lake) -> None:
    write_deltalake(lake.path(RIDES), rides(1, 2), mode="append")
    write_deltalake(lake.path(RIDES), rides(3), mode="append")

    assert row_count(lake, RIDES) == 3
    assert row_count(lake, RIDES, version=1) == 2
    assert row_count(lake, RIDES, version=0) == 0
