"""The contract of sinks, of those whose target is a table or a folder of files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow import csv, parquet

from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.lake import Lake
from rivermark.model.sink import Sink, SinkContext
from rivermark.sinks.delta_append import DeltaAppend
from rivermark.sinks.delta_upsert import DeltaUpsert
from rivermark.sinks.file_drafts import Format
from rivermark.sinks.files import FileSink
from rivermark.sinks.postgres.declaration import PostgresAppend, PostgresUpsert
from tests.kills import Killer
from tests.sink_contract import NewTarget, SinkContract, Target, is_folder
from tests.unit.sinks.conftest import COMMIT, FARES, connected, of_json

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
                part = of_json(path.read_text().splitlines())
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


REPLACE = (
    *("rivermark.lake.replace.write_deltalake", "rivermark.lake.replace.write_checksum"),
    # By Spark: before its commit, and behind it.
    *("rivermark.lake.replace.user_metadata", "rivermark.lake.replace.CommitLog"),
)
MERGE = (
    "rivermark.sinks.upsert_writer.commit_properties",
    "rivermark.sinks.upsert_writer.write_checksum",
)
FILES = ("rivermark.sinks.files.filesystem", "rivermark.sinks.file_drafts.filesystem")
IN_POSTGRES = Case(
    PostgresAppend(table="fares", database="$TEST_DATABASE"),
    of_postgres,
    steps=(
        *("rivermark.sinks.postgres.target.Target.held", "psycopg.Cursor.copy"),
        *("rivermark.sinks.postgres.upserter.Upserter._run", "psycopg.Transaction.__exit__"),
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


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
# A process that is killed closes nothing.
@pytest.mark.filterwarnings("ignore:<psycopg:ResourceWarning")
class TestTables(SinkContract):
    """Delta tables, files and tables of PostgreSQL."""

    @pytest.fixture
    def new_target(
        self,
        case: Case,
        new_context: Callable[[], SinkContext],
        killer: Killer,
        request: pytest.FixtureRequest,
    ) -> NewTarget:
        empty = request.getfixturevalue(case.fixture) if case.fixture else None
        for step in case.steps:
            killer.before(step)
        for store in case.stores:
            killer.within(store)

        def make() -> Target:
            if empty is not None:
                empty()
            where = new_context()
            return Target(case.sink, where, partial(case.read, where), case.is_there)

        return make
