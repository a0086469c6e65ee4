"""What every sink that promises exactly once keeps to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyarrow import csv, parquet

from rivermark.lake.lake import Lake
from rivermark.lake.schema import arrow_schema
from rivermark.model.sink import BatchIdentity, Sink, SinkContext
from rivermark.sinks.delta_append import DeltaAppend
from rivermark.sinks.delta_upsert import DeltaUpsert
from rivermark.sinks.files import FileSink, Format
from rivermark.sinks.postgres.declaration import PostgresAppend, PostgresUpsert
from tests.unit.sinks.conftest import (
    DAY,
    FARES,
    NOON,
    Killed,
    Killer,
    NewContext,
    by_ride,
    connected,
    context,
    fares,
    two_days,
)

SCHEMA = arrow_schema(FARES.schema)


def of_table(where: SinkContext) -> pa.Table:
    """The rows of the output's table."""
    return DeltaTable(Lake(where.root).path(FARES)).to_pyarrow_table()


def of_files(kind: Format) -> Callable[[SinkContext], pa.Table]:
    """The rows of all files that a reader sees; fails where one of them is not whole."""

    def read(where: SinkContext) -> pa.Table:
        folder = Path(where.root) / "exports" / FARES.name
        parts = [SCHEMA.empty_table()]
        for path in sorted(folder.glob(f"day=*/*.{kind}")):
            if kind == "jsonl":
                rows = [json.loads(line) for line in path.read_text().splitlines()]
                text = pa.Table.from_pylist(rows)
                moments = pc.strptime(text["at"], format="%Y-%m-%dT%H:%M:%SZ", unit="us").cast(
                    SCHEMA.field("at").type
                )
                part = text.set_column(1, "at", moments)
            elif kind == "csv":
                part = csv.read_csv(path)
            else:
                part = parquet.ParquetFile(path).read()
            parts.append(part.select(SCHEMA.names).cast(SCHEMA))
        return pa.concat_tables(parts)

    return read


def of_postgres(where: SinkContext) -> pa.Table:
    """The rows of the table in PostgreSQL."""
    with connected() as connection:
        if not is_in_postgres("fares"):
            return SCHEMA.empty_table()
        cursor = connection.execute(f"SELECT {', '.join(SCHEMA.names)} FROM fares")  # noqa: S608
        rows = [dict(zip(SCHEMA.names, row, strict=True)) for row in cursor]
    return pa.Table.from_pylist(rows, SCHEMA)


def is_in_postgres(place: str) -> bool:
    with connected() as connection:
        return bool(connection.execute("SELECT to_regclass(%s)", [place]).fetchone() != (None,))


def is_folder(place: str) -> bool:
    return Path(place).is_dir()


@dataclass(frozen=True)
class Case:
    """A sink, how its target is read, and between which steps of it a test may kill.

    `steps` are functions, by the module that calls them, each call of which is a step; `stores` are
    functions that open a file system, each change of which is one. `is_there` says whether a place
    that `archive` returns exists. `fixture` provides the server that it writes to, emptied.
    """

    sink: Sink
    read: Callable[[SinkContext], pa.Table]
    steps: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    is_there: Callable[[str], bool] = is_folder
    fixture: str = ""


COMMIT = (
    "rivermark.lake.append.delta_commit.write_data_file",
    "rivermark.lake.append.delta_commit.put_checksum",
    "os.link",
)
REPLACE = ("rivermark.lake.replace.write_deltalake", "rivermark.lake.replace.write_checksum")
MERGE = (
    "rivermark.sinks.delta_upsert.commit_properties",
    "rivermark.sinks.delta_upsert.write_checksum",
)
FILES = ("rivermark.sinks.files.filesystem",)
IN_POSTGRES = Case(
    PostgresAppend(table="fares", database="$TEST_DATABASE"),
    of_postgres,
    steps=(
        *("rivermark.sinks.postgres.target.Target.held", "psycopg.Cursor.copy"),
        *("rivermark.sinks.postgres.writer.Upserter._run", "psycopg.Transaction.__exit__"),
        "rivermark.sinks.postgres.target.Target.note",
    ),
    is_there=is_in_postgres,
    fixture="new_schema",
)
CASES = {
    "append": Case(DeltaAppend(), of_table, steps=(*COMMIT, *REPLACE)),
    "upsert": Case(DeltaUpsert(version="at", deleted="gone"), of_table, steps=MERGE),
    "parquet": Case(FileSink(format="parquet"), of_files("parquet"), stores=FILES),
    "csv": Case(FileSink(format="csv"), of_files("csv"), stores=FILES),
    "jsonl": Case(FileSink(format="jsonl"), of_files("jsonl"), stores=FILES),
    "postgres append": IN_POSTGRES,
    "postgres upsert": replace(
        IN_POSTGRES,
        sink=PostgresUpsert(table="fares", database="$TEST_DATABASE", version="at", deleted="gone"),
    ),
}
pytestmark = [
    pytest.mark.parametrize("case", CASES.values(), ids=CASES),
    # A process that is killed closes nothing.
    pytest.mark.filterwarnings("ignore:<psycopg:ResourceWarning"),
]


@pytest.fixture
def new_context(case: Case, new_context: NewContext, request: pytest.FixtureRequest) -> NewContext:
    """A context whose target is empty, at each call."""
    if not case.fixture:
        return new_context
    empty: Callable[[], None] = request.getfixturevalue(case.fixture)

    def make() -> SinkContext:
        empty()
        return new_context()

    return make


@pytest.fixture
def killer(case: Case, new_context: NewContext) -> Iterator[Killer]:
    made = Killer()
    for target in case.steps:
        made.before(target)
    for target in case.stores:
        made.within(target)
    yield made
    made.patch.undo()


def test_a_batch_that_is_written_again_is_there_once(case: Case, new_context: NewContext) -> None:
    where = new_context()
    writer, batch = case.sink.open(where), where.origin.batch(0)
    assert writer.write(two_days(), batch) == 2
    writer.write(two_days(), batch)
    case.sink.open(where).write(two_days(), batch)

    assert by_ride(case.read(where)) == by_ride(two_days())


def test_the_target_says_which_batch_it_holds(case: Case, new_context: NewContext) -> None:
    where = new_context()
    writer = case.sink.open(where)
    assert writer.last() is None
    for number in (0, 1):
        writer.write(fares((number, 1.0)), where.origin.batch(number))
        assert writer.last() == where.origin.batch(number)

    assert case.sink.open(where).last() == where.origin.batch(1)
    later = context(Lake(where.root), generation=1)
    assert case.sink.open(later).last() is None


def test_a_kill_between_any_two_steps_of_a_batch_leaves_each_row_once(
    case: Case, new_context: NewContext, killer: Killer
) -> None:
    for due in range(1, 1000):
        where = new_context()
        case.sink.open(where).write(fares((1, 0.5), at=NOON - timedelta(hours=1)), first(where))
        killer.due, killer.steps = due, 0
        try:
            case.sink.open(where).write(two_days(), where.origin.batch(1))
        except Killed:
            case.read(where)  # A reader opens no half file.
        else:
            break
        killer.due = None
        case.sink.open(where).write(two_days(), where.origin.batch(1))
        expected = two_days() if case.sink.updates_rows else with_first(two_days())
        assert by_ride(case.read(where)) == by_ride(expected), f"killed before step {due}"
    assert due > 2


def test_a_kill_between_any_two_steps_of_a_replacement_leaves_the_days_replaced(
    case: Case, new_context: NewContext, killer: Killer
) -> None:
    for due in range(1, 1000):
        where = new_context()
        case.sink.open(where).write(two_days(), first(where))
        killer.due, killer.steps = due, 0
        try:
            case.sink.open(where).replace(fares((1, 9.0)), [DAY], "20240301-a")
        except Killed:
            case.read(where)
        else:
            break
        killer.due = None
        case.sink.open(where).replace(fares((1, 9.0)), [DAY], "20240301-a")
        assert {r["ride"]: r["fare"] for r in by_ride(case.read(where))} == {1: 9.0, 2: 2.0}
    assert due > 2


def test_days_are_replaced_by_what_a_recompute_returns_and_other_days_stay(
    case: Case, new_context: NewContext
) -> None:
    where = new_context()
    writer = case.sink.open(where)
    writer.write(two_days(), first(where))
    for _ in range(2):
        assert writer.replace(fares((1, 7.0), (3, 3.0)), [DAY], "20240301-a") == 2

    found = by_ride(case.read(where))
    assert [(r["ride"], r["fare"]) for r in found] == [(1, 7.0), (2, 2.0), (3, 3.0)]
    writer.write(fares((4, 4.0)), where.origin.batch(1))
    assert len(by_ride(case.read(where))) == 4


def test_a_reset_stream_begins_with_an_empty_target(case: Case, new_context: NewContext) -> None:
    where = new_context()
    case.sink.open(where).write(two_days(), first(where))
    places = case.sink.archive(where, "20240301T000000Z")

    assert all(case.is_there(place) for place in places)
    if not case.sink.writes_table:
        assert case.read(where).num_rows == 0
        after = replace(where, origin=replace(where.origin, generation=1))
        case.sink.open(after).write(two_days(), after.origin.batch(0))
        assert case.read(where).num_rows == 2


def first(where: SinkContext) -> BatchIdentity:
    return where.origin.batch(0)


def with_first(rows: pa.Table) -> pa.Table:
    return pa.concat_tables([rows, fares((1, 0.5), at=NOON - timedelta(hours=1))])
