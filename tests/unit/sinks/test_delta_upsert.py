"""The latest row of each key, whatever the order and the cut of the batches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import StringType, StructField, StructType

from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import rows_of
from rivermark.model.errors import DeclarationError
from rivermark.model.sink import SinkWriter
from rivermark.model.stream import Output
from rivermark.model.table import Table
from rivermark.sinks.delta_upsert import DeltaUpsert
from rivermark.sinks.undelivered import undelivered_of, waiting_in
from tests.unit.sinks.conftest import DAY, FARES, NOON, context

METERS = Table(
    name="test/meters",
    schema=StructType([*FARES.schema.fields, StructField("meter", StringType())]),
    description="The newest fare of each ride.",
    keys=("ride",),
)
SINK = DeltaUpsert(version="at", deleted="gone")
Update = tuple[int | None, int | None, float | None]
"""(ride, minutes after noon or no time, fare or None for a deletion)"""


def rows(updates: Sequence[Update]) -> pa.Table:
    return rows_of(
        METERS,
        [
            {
                "ride": ride,
                "meter": "m",
                "at": None if minutes is None else NOON + timedelta(minutes=minutes),
                "fare": fare,
                "gone": fare is None,
            }
            for ride, minutes, fare in updates
        ],
    )


class Meters:
    """A table of the newest fares in a lake of its own, and its writer."""

    def __init__(self, root: Path, table: Table = METERS, sink: DeltaUpsert = SINK) -> None:
        self.lake = Lake(str(root))
        self.table = table
        create_table(self.lake, table)
        self.context = context(self.lake, table)
        self.writer: SinkWriter = sink.open(self.context)
        self.batch = 0

    def write(self, *updates: Update) -> None:
        self.writer.write(rows(updates), self.context.origin.batch(self.batch))
        self.batch += 1

    def fares(self) -> dict[int, float]:
        found = DeltaTable(self.lake.path(self.table)).to_pyarrow_table().to_pylist()
        assert len({row["ride"] for row in found}) == len(found)
        return {row["ride"]: row["fare"] for row in found}


@pytest.fixture
def meters(tmp_path: Path) -> Meters:
    return Meters(tmp_path)


@pytest.mark.parametrize("updates", [*permutations([(42, 0, 10.0), (42, 5, 12.5), (7, 3, 1.0)])])
def test_b059_of_two_updates_in_one_batch_the_newer_counts_in_either_order(
    meters: Meters, updates: Sequence[Update]
) -> None:
    meters.write(*updates)
    assert meters.fares() == {42: 12.5, 7: 1.0}


def test_b059_an_older_batch_that_comes_later_does_no_harm(meters: Meters) -> None:
    meters.write((42, 5, 12.5))
    meters.write((42, 0, 10.0), (43, 0, 1.0))
    assert meters.fares() == {42: 12.5, 43: 1.0}

    meters.write((42, 6, 13.0))
    assert meters.fares() == {42: 13.0, 43: 1.0}


def test_a_deleted_key_stays_deleted_when_an_older_row_comes_late(meters: Meters) -> None:
    meters.write((1, 5, 1.0), (2, 5, 2.0))
    meters.write((1, 7, None))
    assert meters.fares() == {2: 2.0}

    meters.write((1, 6, 9.0))
    assert meters.fares() == {2: 2.0}
    meters.write((1, 8, 3.0))
    assert meters.fares() == {1: 3.0, 2: 2.0}


def test_a_deletion_that_comes_before_the_row_it_deletes_counts(meters: Meters) -> None:
    meters.write((1, 5, None))
    meters.write((1, 3, 1.0))

    assert meters.fares() == {}


def test_no_time_is_older_than_any(meters: Meters) -> None:
    meters.write((1, None, 1.0), (1, 0, 2.0), (2, None, 5.0))
    meters.write((2, 0, 6.0), (1, None, 9.0))

    assert meters.fares() == {1: 2.0, 2: 6.0}


UPDATES = st.lists(
    st.tuples(
        st.integers(1, 2),
        st.none() | st.integers(0, 2),
        st.none() | st.sampled_from([1.0, 2.0]),
    ),
    min_size=1,
    max_size=6,
)


# Each example makes two tables.
@settings(max_examples=settings().max_examples // 4)
@given(updates=UPDATES, data=st.data())
def test_neither_order_nor_cut_nor_repetition_changes_the_result(
    tmp_path_factory: pytest.TempPathFactory, updates: list[Update], data: st.DataObject
) -> None:
    at_once = Meters(tmp_path_factory.mktemp("once"))
    at_once.write(*updates)

    shuffled = data.draw(st.permutations([*updates, *updates[:2]]))
    cut = data.draw(st.integers(0, len(shuffled)))
    in_two = Meters(tmp_path_factory.mktemp("two"))
    for part in (shuffled[:cut], shuffled[cut:]):
        in_two.write(*part)

    assert in_two.fares() == at_once.fares()


def test_of_equal_versions_the_recomputed_row_counts(meters: Meters) -> None:
    meters.write((1, 0, 5.0), (2, 0, 5.0))
    for _ in range(2):
        meters.writer.replace(rows([(1, 0, 1.0)]), [DAY], "20240301-a")

    assert meters.fares() == {1: 1.0, 2: 5.0}


def test_rows_that_change_nothing_leave_no_commit(meters: Meters) -> None:
    meters.write((1, 5, 1.0))
    before = CommitLog(meters.lake.path(METERS)).versions()
    meters.write((1, 4, 3.0))
    meters.write((1, 5, 1.0))
    meters.write()

    assert CommitLog(meters.lake.path(METERS)).versions() == before


def test_a_commit_names_its_batch_and_what_was_given_with_it(meters: Meters) -> None:
    batch = meters.context.origin.batch(7)
    meters.writer.write(rows([(1, 0, 1.0)]), batch, {"watermark": "w"})
    newest = CommitLog(meters.lake.path(METERS)).latest()

    assert newest is not None
    assert newest.metadata == {
        "stream": batch.stream,
        "generation": 0,
        "batch": 7,
        "run": "run",
        "watermark": "w",
    }


def test_b089_r08_rows_without_a_key_are_set_aside_and_the_others_are_merged(
    meters: Meters,
) -> None:
    meters.write((1, 0, 1.0))
    for _ in range(2):
        meters.write((2, 0, 2.0), (None, 0, 3.0), (None, 1, 4.0))

    assert meters.fares() == {1: 1.0, 2: 2.0}
    kept = waiting_in(meters.lake, undelivered_of(meters.table))
    assert [json.loads(row["body"])["fare"] for row in kept] == [3.0, 4.0]
    assert "column 'ride' is a key and null" in kept[0]["reason"]


def test_a_key_of_several_columns_is_one_key(tmp_path: Path) -> None:
    table = replace(METERS, keys=("ride", "meter"))
    two = Meters(tmp_path, table, DeltaUpsert(version="at", deleted="fare > 100"))
    two.write((1, 0, 1.0), (2, 1, 2.0), (1, 2, 3.0))
    assert two.fares() == {1: 3.0, 2: 2.0}

    two.write((2, 3, 101.0))
    assert two.fares() == {1: 3.0}


def test_a_key_may_be_text(tmp_path: Path) -> None:
    named = Meters(tmp_path, replace(METERS, keys=("meter",)))

    def write(*updates: tuple[str, int, float | None]) -> None:
        without_names = rows([(1, minutes, fare) for _, minutes, fare in updates])
        meters = pa.array([meter for meter, _, _ in updates])
        batch = named.context.origin.batch(named.batch)
        named.writer.write(without_names.set_column(4, "meter", meters), batch)
        named.batch += 1

    write(("a", 0, 1.0), ("b", 0, 2.0), ("c", 0, 3.0))
    write(("a", 2, 5.0))
    write(("b", 1, None))
    write(("b", 0, 7.0), ("d", 4, 8.0))

    found = DeltaTable(named.lake.path(METERS)).to_pyarrow_table().to_pylist()
    assert {row["meter"]: row["fare"] for row in found} == {"a": 5.0, "c": 3.0, "d": 8.0}


def test_a_table_without_keys_or_version_is_refused_at_declaration() -> None:
    with pytest.raises(DeclarationError, match="needs the table's `keys`"):
        Output(replace(METERS, keys=()), sinks=(SINK,))
    with pytest.raises(DeclarationError, match="by 'seen_at', which is not a column"):
        Output(METERS, sinks=(DeltaUpsert(version="seen_at"),))
