"""One row a key, the newest (case B059)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import permutations

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import (
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.merge import merge_latest
from rivermark.lake.schema import create_table
from rivermark.model.errors import RivermarkError
from rivermark.model.table import Table
from tests.unit.lake.conftest import NOON

FARES = Table(
    name="test/fares",
    schema=StructType(
        [
            StructField("ride", LongType()),
            StructField("meter", StringType()),
            StructField("at", TimestampType()),
            StructField("fare", DoubleType()),
        ]
    ),
    description="The newest fare of each ride.",
)
ARROW = pa.schema(
    [("ride", pa.int64()), ("meter", pa.string()), ("at", pa.timestamp("us", "UTC")),
     ("fare", pa.float64())]
)  # fmt: skip
Update = tuple[int | None, int | None, float]


def merge(lake: Lake, updates: Sequence[Update], keys: Sequence[str] = ("ride",)) -> None:
    """Updates as (ride, minutes after noon or no time, fare)."""
    rows = [
        {
            "ride": r,
            "meter": "m",
            "at": None if m is None else NOON + timedelta(minutes=m),
            "fare": f,
        }
        for r, m, f in updates
    ]
    create_table(lake, FARES)
    merge_latest(lake, FARES, pa.Table.from_pylist(rows, ARROW), keys, "at", metadata={"run": "r"})


def fares(lake: Lake) -> dict[int, float]:
    found = DeltaTable(lake.path(FARES)).to_pyarrow_table().to_pylist()
    assert len({row["ride"] for row in found}) == len(found)
    return {row["ride"]: row["fare"] for row in found}


@pytest.mark.parametrize("updates", [*permutations([(42, 0, 10.0), (42, 5, 12.5), (7, 3, 1.0)])])
def test_b059_of_two_updates_in_one_batch_the_newer_counts_in_either_order(
    lake: Lake, updates: Sequence[Update]
) -> None:
    merge(lake, updates)
    assert fares(lake) == {42: 12.5, 7: 1.0}

    merge(lake, updates)
    assert fares(lake) == {42: 12.5, 7: 1.0}


def test_b059_an_older_batch_that_comes_later_does_no_harm(lake: Lake) -> None:
    merge(lake, [(42, 5, 12.5)])
    merge(lake, [(42, 0, 10.0), (43, 0, 1.0)])
    assert fares(lake) == {42: 12.5, 43: 1.0}

    merge(lake, [(42, 6, 13.0)])
    assert fares(lake) == {42: 13.0, 43: 1.0}


def test_of_equal_times_the_first_stays(lake: Lake) -> None:
    merge(lake, [(1, 0, 1.0), (1, 0, 2.0)])
    merge(lake, [(1, 0, 3.0)])

    assert fares(lake) == {1: 1.0}


def test_no_time_is_older_than_any(lake: Lake) -> None:
    merge(lake, [(1, None, 1.0), (1, 0, 2.0), (2, None, 5.0)])
    merge(lake, [(2, 0, 6.0), (1, None, 9.0)])

    assert fares(lake) == {1: 2.0, 2: 6.0}


def test_b089_rows_without_a_key_are_refused_and_nothing_is_written(lake: Lake) -> None:
    merge(lake, [(1, 0, 1.0)])
    with pytest.raises(RivermarkError, match="rows without a key"):
        merge(lake, [(2, 0, 2.0), (None, 0, 3.0)])

    assert fares(lake) == {1: 1.0}


def test_a_key_that_is_no_column_is_refused(lake: Lake) -> None:
    with pytest.raises(RivermarkError, match="no \\['driver'\\]"):
        merge(lake, [(1, 0, 1.0)], keys=("driver",))
    with pytest.raises(RivermarkError, match="cannot be merged by \\[\\]"):
        merge(lake, [(1, 0, 1.0)], keys=())


def test_a_key_of_several_columns_is_one_key(lake: Lake) -> None:
    merge(lake, [(1, 0, 1.0), (2, 1, 2.0), (1, 2, 3.0)], keys=("ride", "meter"))

    assert fares(lake) == {1: 3.0, 2: 2.0}


def test_nothing_to_merge_leaves_no_commit_and_a_merge_tells_who_made_it(lake: Lake) -> None:
    merge(lake, [])
    assert CommitLog(lake.path(FARES)).versions() == [0]
    merge(lake, [(1, 0, 1.0)])
    newest = CommitLog(lake.path(FARES)).latest()
    assert newest is not None
    assert newest.metadata == {"run": "r"}
