"""Sinks to a real PostgreSQL: what the table holds, and what happens where something is wrong."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from rivermark import Daily, DeclarationError, Output, RivermarkError, Table, columns
from rivermark.connect import postgres as client
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import rows_of
from rivermark.model.ddl import data_type
from rivermark.model.errors import CheckpointIncompatible, TableSchemaMismatch
from rivermark.model.sink import SinkContext
from rivermark.sinks import PostgresAppend, PostgresUpsert
from rivermark.sinks.output import OutputWriter
from rivermark.sinks.postgres.column_types import holds
from rivermark.sinks.undelivered import undelivered_of, waiting_in
from rivermark.testing import wait_until
from setup.postgres_server import PostgresServer
from tests.unit.sinks.conftest import DAY, FARES, NOON, connected, context, fares, two_days

APPEND = PostgresAppend(table="fares", database="$TEST_DATABASE")
UPSERT = PostgresUpsert(
    table="fares", database="$TEST_DATABASE", version="at", deleted="coalesce(gone, fare < 0)"
)
pytestmark = [
    pytest.mark.usefixtures("new_schema"),
    # Writers of tests that end with an error.
    pytest.mark.filterwarnings("ignore:<psycopg:ResourceWarning"),
]


@pytest.fixture
def where(tmp_path: Path) -> SinkContext:
    return context(Lake(str(tmp_path)))


def table_of(name: str = "fares", columns: str = "ride, fare") -> list[tuple[Any, ...]]:
    """Rows of a table, in order."""
    with connected() as connection:
        return connection.execute(f"SELECT {columns} FROM {name} ORDER BY 1, 2").fetchall()  # noqa: S608


def sql(text: str) -> None:
    with connected() as connection:
        connection.execute(text)


Update = tuple[int, int | None, float | None]
"""(ride, minutes after noon or no time, fare or None for a deletion)"""


def updates(*changes: Update) -> pa.Table:
    return rows_of(
        FARES,
        [
            {
                "ride": ride,
                "at": None if minutes is None else NOON + timedelta(minutes=minutes),
                "fare": fare,
                "gone": fare is None,
            }
            for ride, minutes, fare in changes
        ],
    )


def latest(changes: Sequence[Update]) -> list[tuple[int, float]]:
    """What a table of the latest rows holds, in plain Python."""

    def rank(change: Update) -> tuple[Any, ...]:
        _, minutes, fare = change
        return (minutes is not None, minutes or 0, fare is None, str(fare))

    newest: dict[int, Update] = {}
    for change in changes:
        held = newest.get(change[0])
        if held is None or rank(change) > rank(held):
            newest[change[0]] = change
    return sorted((ride, fare) for ride, _, fare in newest.values() if fare is not None)


CHANGES: list[Update] = [
    (1, 1, 1.0),
    (1, 3, None),
    (1, 2, 2.0),
    (2, 5, 4.0),
    (2, 5, 5.0),
    (3, None, 7.0),
    (3, 0, 6.0),
]


def test_the_latest_row_of_each_key_does_not_depend_on_order_or_cut(where: SinkContext) -> None:
    for number, order in enumerate(list(permutations(CHANGES))[::1300]):
        sink = replace(UPSERT, table=f"fares_{number}")
        writer = sink.open(where)
        for batch, start in enumerate(range(0, len(order), 1 + number % 3)):
            part = order[start : start + 1 + number % 3]
            writer.write(updates(*part), where.origin.batch(batch))
        writer.close()
        assert table_of(sink.table) == latest(CHANGES) == [(2, 5.0), (3, 6.0)], order


def test_a_deleted_key_comes_back_by_a_newer_row_only_and_a_recompute_overrules(
    where: SinkContext,
) -> None:
    writer = UPSERT.open(where)
    writer.write(updates((1, 5, 1.0), (2, 5, 2.0)), where.origin.batch(0))
    writer.write(updates((1, 5, None), (2, 4, None)), where.origin.batch(1))
    writer.write(updates((1, 4, 9.0), (2, 5, 1.5)), where.origin.batch(2))
    assert table_of() == [(2, 2.0)]
    assert (1, NOON + timedelta(minutes=5)) in table_of("fares_tombstones", "ride, at")
    writer.replace(updates((1, 5, 3.0), (2, 5, 1.0)), [DAY], "again")
    assert table_of() == [(1, 3.0), (2, 1.0)]
    writer.write(updates((1, 6, None), (1, 7, 8.0)), where.origin.batch(3))
    assert table_of() == [(1, 8.0), (2, 1.0)]
    writer.close()


def undelivered(where: SinkContext) -> list[dict[str, Any]]:
    return waiting_in(Lake(where.root), undelivered_of(where.table))


def test_r08_a_null_in_the_key_costs_its_row_alone_and_says_where(where: SinkContext) -> None:
    batch = updates((1, 5, 1.0), (None, 6, 2.0), (3, 5, 3.0))  # type: ignore[arg-type]
    again = updates((None, 7, 4.0), (3, 6, 9.0))  # type: ignore[arg-type]
    with closing(UPSERT.open(where)) as writer:
        assert writer.write(batch, where.origin.batch(0)) == 3
        writer.replace(again, [DAY], "again")
        writer.replace(again, [DAY], "again")
    assert table_of() == [(1, 1.0), (3, 9.0)]
    kept = undelivered(where)
    assert sorted(json.loads(row["body"])["fare"] for row in kept) == [2.0, 4.0]
    assert {row["reason"] for row in kept} == {
        "table fares: column 'ride' is a key and null: give it a value in the build"
    }
    assert {row["target"] for row in kept} == {UPSERT.target}


ODD: list[tuple[str, str, Any]] = [
    ("note varchar(5)", "column 'note': value too long for type character varying(5)", "too long"),
    ("note text CHECK (note <> 'bad')", "violates check constraint", "bad"),
    ("note text NOT NULL DEFAULT 'x'", "column 'note': null value in column", None),
    ("note text", "holds a NUL character, which no text", "b\0c"),
    ("note text UNIQUE", "duplicate key value", "a"),
]


@pytest.mark.parametrize("kind", ["append", "upsert"])
@pytest.mark.parametrize(("column", "reason", "value"), ODD)
def test_m006_m007_a_row_that_a_database_refuses_is_undelivered_and_sent_again_later(
    where: SinkContext, kind: str, column: str, reason: str, value: Any
) -> None:
    sql(f"CREATE TABLE notes (id bigint UNIQUE, at timestamptz, {column})")
    table = Table(
        name="test/notes",
        schema="id long, at timestamp, note string",
        description="n",
        keys=("id",),
    )
    where = context(Lake(where.root), table)
    sink = (
        replace(APPEND, table="notes")
        if kind == "append"
        else PostgresUpsert(table="notes", database="$TEST_DATABASE", version="at")
    )
    texts = ["a", "b", value, "d"]
    rows = rows_of(table, [{"id": n, "at": NOON, "note": text} for n, text in enumerate(texts)])
    with closing(sink.open(where)) as writer:
        assert writer.write(rows, where.origin.batch(0)) == 4
        assert table_of("notes", "id, note") == [(0, "a"), (1, "b"), (3, "d")]
        [kept] = undelivered(where)
        assert reason in kept["reason"]
        assert "table notes" in kept["reason"]
        assert json.loads(kept["body"])["note"] == value
        # It cannot be sent yet, and then it can, once.
        assert reason in str(writer.resend([kept])[0])
        sql("DROP TABLE notes; CREATE TABLE notes (id bigint UNIQUE, at timestamptz, note text)")
        if "NUL" not in reason:
            assert writer.resend([kept]) == [None]
            assert writer.resend([kept]) == [None]
            assert table_of("notes", "id, note") == [(2, value)]
            assert undelivered(where) == []


def test_m002_m007_tables_with_policies_views_generated_columns_and_triggers(
    where: SinkContext,
) -> None:
    sql("CREATE TABLE fares (ride bigint UNIQUE, at timestamptz, fare float8, gone boolean)")
    sql("CREATE VIEW seen AS SELECT * FROM fares")
    with pytest.raises(TableSchemaMismatch, match="it is a view, and rows are written to tables"):
        replace(APPEND, table="seen").open(where)
    sql(
        "CREATE TABLE made (ride bigint, at timestamptz, gone boolean, "
        "fare float8 GENERATED ALWAYS AS (ride * 2) STORED)"
    )
    with pytest.raises(TableSchemaMismatch, match="column 'fare' is generated there"):
        replace(APPEND, table="made").open(where)

    sql(
        "CREATE TABLE dropping (ride bigint, at timestamptz, fare float8, gone boolean); "
        "CREATE FUNCTION away() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF NEW.ride = 2 THEN RETURN NULL; END IF; RETURN NEW; END $$; "
        "CREATE TRIGGER away BEFORE INSERT ON dropping FOR EACH ROW EXECUTE FUNCTION away()"
    )
    with closing(replace(APPEND, table="dropping").open(where)) as writer:
        writer.write(two_days(), where.origin.batch(0))
    assert table_of("dropping") == [(1, 1.0)]
    assert "a trigger or rule of the table kept the row away" in undelivered(where)[0]["reason"]


def test_m002_a_table_with_row_security_is_appended_to(
    where: SinkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql(
        "CREATE TABLE fares (ride bigint UNIQUE, at timestamptz, fare float8, gone boolean); "
        "ALTER TABLE fares ENABLE ROW LEVEL SECURITY; "
        "CREATE POLICY every ON fares USING (true); DROP ROLE IF EXISTS visitor; "
        "CREATE ROLE visitor LOGIN PASSWORD 'v'; GRANT ALL ON SCHEMA public TO visitor; "
        "GRANT ALL ON fares TO visitor; GRANT TEMP ON DATABASE postgres TO visitor"
    )
    monkeypatch.setenv("VISITOR", "v")
    visitor = replace(APPEND, settings={"user": "visitor", "password": "$VISITOR"})
    with closing(visitor.open(where)) as writer:
        writer.write(two_days(), where.origin.batch(0))
    assert len(table_of()) == 2
    sql("DROP OWNED BY visitor; DROP ROLE visitor")


@pytest.mark.parametrize(
    ("there", "kind", "is_held"),
    [
        ("numeric(12,2)", "decimal(10,2)", True),
        ("numeric(12,4)", "decimal(10,2)", True),
        ("numeric(12,4)", "decimal(12,2)", False),
        ("numeric(10,3)", "decimal(10,2)", False),
        ("numeric", "int", True),
        ("numeric(19,0)", "long", True),
        ("numeric(9,0)", "int", False),
        ("character varying(200)", "string", True),
        ("character(200)", "string", False),
        ("double precision", "int", True),
        ("double precision", "long", False),
        ("bigint", "decimal(10,0)", False),
    ],
)
def test_m044_a_column_that_holds_every_value_is_taken(
    there: str, kind: str, is_held: bool
) -> None:
    assert holds(there, data_type(kind)) is is_held


def test_m004_m006_names_of_columns_with_a_percent_sign_or_too_long(where: SinkContext) -> None:
    table = Table(
        name="test/percent",
        schema=StructType([StructField("full%", LongType()), StructField("at%s", TimestampType())]),
        description="p",
        days=Daily("at%s", DAY),
    )
    where = context(Lake(where.root), table)
    with closing(replace(APPEND, table="percent").open(where)) as writer:
        writer.write(rows_of(table, [{"full%": 1, "at%s": NOON}]), where.origin.batch(0))
        writer.replace(rows_of(table, [{"full%": 2, "at%s": NOON}]), [DAY], "again")
    assert table_of("percent", '"full%", "at%s"') == [(2, NOON)]
    named = StructType([StructField("é" * 32, LongType())])
    long = Table(name="test/long", schema=named, description="l")
    with pytest.raises(DeclarationError, match="has 64 bytes, and PostgreSQL keeps 63"):
        APPEND.check(long)


def test_a_key_of_its_own_keeps_the_newest_of_many_rows_of_the_table(where: SinkContext) -> None:
    sink = replace(UPSERT, key=("gone",), deleted=None)
    sink.check(FARES)
    with pytest.raises(DeclarationError, match="an upsert by 'shop', which is not a column"):
        replace(UPSERT, key=("shop",)).check(FARES)
    writer = sink.open(where)
    writer.write(updates((1, 1, 1.0), (2, 3, 2.0), (3, 2, 3.0)), where.origin.batch(0))
    writer.write(updates((4, 2, 4.0)), where.origin.batch(1))
    writer.close()
    assert table_of() == [(2, 2.0)]


def test_identifiers_of_any_kind_and_types_of_any_column_arrive(where: SinkContext) -> None:
    key = 'Order "by"; --'
    others = columns(
        "big decimal(38,10), whole bigint, small tinyint, x double, f float, b binary, d date, "
        "t timestamp, tags array<string>, m map<string,int>, "
        "s struct<a:int,b:string>, odd struct<listed:array<double>>"
    )
    schema = StructType([StructField(key, StringType()), *others.fields])
    table = Table(name="test/every", schema=schema, description="Every type.")
    sink = PostgresAppend(table="Select", database="$TEST_DATABASE")
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)
    rows: list[dict[str, Any]] = [
        {
            key: '\'; DROP TABLE "Select"; -- \\N \t\r\n \\. é\u2028😀',
            "big": Decimal("9999999999999999999999999999.9999999999"),
            "whole": -(2**63),
            "small": -128,
            "x": math.nan,
            "f": math.inf,
            "b": b"\0\xff\\x",
            "d": first.date(),
            "t": first,
            "tags": ["a", None],
            "m": {"a": 1},
            "s": {"a": 1, "b": "x"},
            "odd": {"listed": [1.5, math.nan, -math.inf, None]},
        },
        {key: "", "big": Decimal("1E-10"), "x": -math.inf, "t": last, "d": last.date()},
        {key: None, "x": 5e-324},
    ]
    where = context(Lake(where.root), table)
    writer = sink.open(where)
    writer.write(rows_of(table, rows), where.origin.batch(0))
    writer.close()
    sink.open(where).close()

    texts = ", ".join(
        f'"{name}"' for name in ("big", "whole", "small", "x", "f", "b", "tags", "m", "s", "odd")
    )
    quoted_key = '"' + key.replace('"', '""') + '"'
    [none, empty, full] = sorted(
        table_of('"Select"', f"{quoted_key}, d, t::text, {texts}"),
        key=lambda row: (row[0] is not None, row[0]),
    )
    assert full[0] == rows[0][key]
    assert full[1:3] == (date(1, 1, 1), "0001-01-01 00:00:00+00")
    assert full[3:6] == (rows[0]["big"], -(2**63), -128)
    assert math.isnan(full[6])
    assert full[7:12] == (math.inf, b"\0\xff\\x", ["a", None], [["a", 1]], {"a": 1, "b": "x"})
    # JSON lacks them; null would be another value.
    assert full[12:] == ({"listed": [1.5, "NaN", "-Infinity", None]},)
    assert (empty[0], empty[2], empty[3], empty[6]) == (
        *("", "9999-12-31 23:59:59.999999+00", Decimal("1E-10"), -math.inf),
    )
    assert (none[0], none[6], none[1]) == (None, 5e-324, None)


def test_a_nul_within_a_column_is_undelivered_and_a_text_that_reads_like_its_escape_is_not(
    where: SinkContext,
) -> None:
    table = Table(name="test/notes", schema="id long, notes array<string>", description="Notes.")
    where = context(Lake(where.root), table)
    writer = replace(APPEND, table="listed").open(where)
    good, bad = [{"id": 1, "notes": ["\\u0000"]}], [{"id": 2, "notes": ["b\\\0c"]}]
    writer.write(rows_of(table, good + bad), where.origin.batch(0))
    writer.close()
    assert table_of("listed", "id, notes") == [(1, ["\\u0000"])]
    assert "'notes' holds a NUL" in undelivered(where)[0]["reason"]


def test_times_of_any_year_arrive(where: SinkContext) -> None:
    table = Table(name="test/ends", schema="ends timestamp, day date", description="Ends.")
    where = context(Lake(where.root), table)
    writer = replace(APPEND, table="ends").open(where)
    # A second behind the year 9999, as a zone makes of its last day; and one before the year 1.
    micros, days = [253_402_300_801_000_000, -62_135_596_801_000_000], [2_932_897, -719_163]
    rows = pa.table(
        {
            "ends": pa.array(micros, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "day": pa.array(days, pa.int32()).cast(pa.date32()),
        }
    )
    writer.write(rows, where.origin.batch(0))
    writer.close()
    assert table_of("ends", "ends::text, day::text") == [
        ("0001-12-31 23:59:59+00 BC", "0001-12-31 BC"),
        ("10000-01-01 00:00:01+00", "10000-01-01"),
    ]


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        ("ride bigint, at timestamptz, fare real, gone boolean", "column 'fare' is real th"),
        ("ride integer, at timestamptz, fare float8, gone boolean", "'ride' is integer there, an"),
        ("ride bigint, at timestamptz, fare float8", "it has no column 'gone'"),
        (
            "ride bigint, at timestamptz, fare float8, gone boolean, shop text NOT NULL",
            "its column 'shop' must have a value, and none is written",
        ),
        (
            "ride bigint, at timestamptz, fare float8, gone boolean, UNIQUE (ride, at)",
            r"it has no unique index on exactly \(ride\)",
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused_in_a_sentence(
    where: SinkContext, made: str, problem: str
) -> None:
    sql(f"CREATE TABLE fares ({made})")
    with pytest.raises(TableSchemaMismatch, match=f"cannot hold 'test/fares': .*{problem}"):
        UPSERT.open(where)


def test_a_table_of_ones_own_with_wider_columns_is_taken_as_it_is(where: SinkContext) -> None:
    sql(
        "CREATE SCHEMA shop; CREATE TABLE shop.fares (fare float8, id serial NOT NULL, "
        "ride bigint UNIQUE, gone boolean, at timestamptz, made timestamptz NOT NULL DEFAULT now())"
    )
    writer = replace(UPSERT, table="shop.fares").open(where)
    writer.write(two_days(), where.origin.batch(0))
    writer.close()
    assert table_of("shop.fares") == [(1, 1.0), (2, 2.0)]
    assert table_of("shop.rivermark_batches", "target, batch") == [("fares", 0)]


def test_another_outputs_table_and_another_deployments_are_refused(where: SinkContext) -> None:
    writer = APPEND.open(where)
    writer.write(two_days(), where.origin.batch(7))
    other = replace(where, origin=replace(where.origin, stream="test/others"))
    writer_of_other = APPEND.open(other)
    with pytest.raises(RivermarkError, match="holds the rows of 'test/fares' by stream 'test/fare"):
        writer_of_other.write(two_days(), other.origin.batch(0))
    earlier = where.origin.since - timedelta(days=1)
    deployed = replace(where, origin=replace(where.origin, since=earlier))
    with pytest.raises(RivermarkError, match="each deployment needs a table of its own"):
        APPEND.open(deployed).last()
    assert len(table_of()) == 2


def test_what_is_wrong_with_server_or_account_is_said_at_once(
    where: SinkContext, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    monkeypatch.setenv("WRONG", "hunter2")
    wrong = replace(APPEND, settings={"password": "$WRONG"})
    with pytest.raises(RivermarkError, match="password authentication failed") as raised:
        wrong.open(where)
    assert "hunter2" not in str(raised.value)
    with pytest.raises(RivermarkError, match='database "nowhere" does not exist'):
        replace(APPEND, settings={"dbname": "nowhere"}).open(where)
    with pytest.raises(RivermarkError, match="server does not support SSL"):
        replace(APPEND, settings={"sslmode": "require"}).open(where)
    with pytest.raises(RivermarkError, match='schema "nowhere" does not exist'):
        replace(APPEND, table="nowhere.fares").open(where)
    with pytest.raises(RivermarkError, match="the environment variable NOT_SET, which is not set"):
        replace(APPEND, database="$NOT_SET").open(where)
    writer = APPEND.open(where)
    sql("DROP TABLE fares")
    with pytest.raises(
        RivermarkError,
        match=r"stream 'test/fares' cannot write batch 0 at PostgreSQL .TEST_DATABASE: relation",
    ):
        writer.write(two_days(), where.origin.batch(0))
    assert time.monotonic() - began < client.PATIENCE_SECONDS


def test_a_server_that_restarts_is_waited_for_and_one_that_stays_away_is_named(
    where: SinkContext, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = APPEND.open(where)
    writer.write(fares((1, 1.0)), where.origin.batch(0))
    process = postgres.process()
    assert process is not None
    process.send_signal(signal.SIGQUIT)
    process.wait(30)
    # It dies with the thread that starts it, so another one waits.
    batch = fares((2, 2.0)), where.origin.batch(1)
    writing = Thread(target=writer.write, args=batch)
    writing.start()
    time.sleep(0.3)
    postgres.start()
    writing.join()
    assert table_of() == [(1, 1.0), (2, 2.0)]
    postgres.stop()
    monkeypatch.setattr(client, "PATIENCE_SECONDS", 0.3)
    with pytest.raises(RivermarkError, match="'test/fares' cannot write batch 2 at PostgreSQL"):
        writer.write(fares((3, 3.0)), where.origin.batch(2))
    postgres.start()
    writer.write(fares((3, 3.0)), where.origin.batch(2))
    writer.close()
    assert len(table_of()) == 3


def test_a_backend_that_dies_within_a_batch_leaves_its_rows_once(
    where: SinkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    writer = APPEND.open(where)
    commit = psycopg.Transaction.__exit__
    died: list[bool] = []

    def after(self: Any, *raised: Any) -> Any:
        """The commit is done, and the connection gone before its answer."""
        done = commit(self, *raised)
        if not died:
            died.append(True)
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return done

    monkeypatch.setattr(psycopg.Transaction, "__exit__", after)
    writer.write(two_days(), where.origin.batch(0))
    monkeypatch.undo()
    assert died
    assert len(table_of()) == 2
    sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'rive%'"
    )
    writer.write(fares((3, 3.0)), where.origin.batch(1))
    writer.close()
    assert len(table_of()) == 3


def write_all(where: SinkContext, batches: int) -> None:
    """What a run does after a start: go on behind the batch that the target holds."""
    writer = APPEND.open(where)
    last = writer.last()
    for number in range(0 if last is None else last.batch, batches):
        writer.write(fares((number, 1.0)), where.origin.batch(number))


def test_a_process_that_is_killed_again_and_again_leaves_each_row_once(
    where: SinkContext, new_schema: Callable[[], None]
) -> None:
    processes = multiprocessing.get_context("fork")
    kills = int(os.environ.get("RIVERMARK_POSTGRES_KILLS", "4"))
    for kill in range(kills):
        process = processes.Process(target=write_all, args=(where, 10_000))
        process.start()
        wait_until(
            lambda: with_table() and len(table_of()) > 20 * (kill + 1),  # noqa: B023
            reason="some batches are written",
        )
        process.kill()
        process.join()
    written = table_of()
    write_all(where, written[-1][0] + 3)
    assert [ride for ride, _ in table_of()] == list(range(written[-1][0] + 3))


def with_table() -> bool:
    with connected() as connection:
        return connection.execute("SELECT to_regclass('fares')").fetchone() != (None,)


def test_a_reset_puts_the_rows_aside_and_another_stream_may_have_the_table(
    where: SinkContext,
) -> None:
    writer = UPSERT.open(where)
    writer.write(updates((1, 1, 1.0), (2, 1, 2.0), (1, 2, None)), where.origin.batch(0))
    writer.close()
    assert UPSERT.archive(where, "20240301T000000Z") == ["fares_removed_20240301t000000z"]
    assert table_of("fares_removed_20240301t000000z") == [(2, 2.0)]
    assert table_of() == table_of("fares_tombstones", "ride, at") == []
    assert table_of("rivermark_batches", "target, batch") == []
    sql("DROP TABLE fares")
    assert UPSERT.archive(where, "20240302T000000Z") == []


def test_a_column_is_added_to_the_declaration_by_hand(where: SinkContext) -> None:
    APPEND.open(where).close()
    grown = replace(
        FARES, schema=StructType([*FARES.schema.fields, StructField("note", StringType())])
    )
    again = context(Lake(where.root), grown)
    with pytest.raises(TableSchemaMismatch, match=r"it has no column 'note'\. Alter it there"):
        APPEND.open(again)
    sql("ALTER TABLE fares ADD COLUMN note varchar")
    APPEND.open(again).close()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl for a certificate")
def test_a_connection_by_tls_checks_the_server_before_anything_is_said(
    where: SinkContext, postgres: PostgresServer, tmp_path: Path
) -> None:
    data = postgres.folder / "data"
    for folder in (data, tmp_path):
        files = ["-keyout", str(folder / "server.key"), "-out", str(folder / "server.crt")]
        subprocess.run(
            [
                *(
                    "openssl",
                    "req",
                    "-x509",
                    "-newkey",
                    "ec",
                    "-pkeyopt",
                    "ec_paramgen_curve:P-256",
                ),
                *("-nodes", "-subj", "/CN=db", "-addext", "subjectAltName=IP:127.0.0.1", *files),
            ],
            check=True,
            capture_output=True,
        )
    if postgres.account is not None:
        for name in ("server.key", "server.crt"):
            shutil.chown(data / name, postgres.account)
    sql("ALTER SYSTEM SET ssl = on")
    sql("SELECT pg_reload_conf()")
    try:
        trusted = {"sslmode": "verify-full", "sslrootcert": str(data / "server.crt")}
        writer = None

        def opened() -> bool:
            nonlocal writer
            with suppress(RivermarkError):
                writer = replace(APPEND, settings=trusted).open(where)
            return writer is not None

        wait_until(opened, reason="the server has read its settings again")
        assert writer is not None
        writer.write(two_days(), where.origin.batch(0))
        with connected() as connection:
            [(encrypted,)] = connection.execute(
                "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) "
                "WHERE application_name = 'rivermark test/fares'"
            )
        assert encrypted
        writer.close()
        other = trusted | {"sslrootcert": str(tmp_path / "server.crt")}
        with pytest.raises(RivermarkError, match="certificate verify failed"):
            replace(APPEND, settings=other).open(where)
    finally:
        sql("ALTER SYSTEM RESET ssl")
        sql("SELECT pg_reload_conf()")


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        ("UPDATE rivermark_batches SET batch = 1", "says that it holds batch 1, and batch 3 was"),
        ("DELETE FROM rivermark_batches", "says that it holds no batch, and batch 3 was written"),
        ("DROP TABLE rivermark_batches", "says that it holds no batch, and batch 3 was written"),
        ("TRUNCATE fares", "fares in PostgreSQL is empty, and batch 3 was written"),
        ("DROP TABLE fares", "fares in PostgreSQL is empty, and batch 3 was written"),
    ],
)
@pytest.mark.parametrize("sink", [APPEND, UPSERT])
def test_r10_a_database_that_went_back_in_time_is_refused_with_what_to_do(
    where: SinkContext, sink: PostgresAppend | PostgresUpsert, loss: str, said: str
) -> None:
    lake, output = Lake(where.root), Output(FARES, sinks=(sink,))
    create_table(lake, FARES)
    with closing(OutputWriter(lake, output, where.origin)) as writer:
        for batch in range(4):
            writer.write(fares((batch, 1.0)), batch, {})
    OutputWriter(lake, output, where.origin).close()
    sql(loss)
    if sink is UPSERT and "fares" in loss:
        return  # The latest rows of keys may be none.
    with pytest.raises(CheckpointIncompatible, match=f"{said}.*rivermark reset test/fares"):
        OutputWriter(lake, output, where.origin)


@pytest.mark.parametrize("sink", [APPEND, UPSERT])
def test_m014_rows_of_a_person_are_erased_with_what_was_put_aside(
    sink: PostgresAppend | PostgresUpsert, where: SinkContext
) -> None:
    with closing(sink.open(where)) as writer:
        writer.write(fares((1, 1.0), (2, 2.0), (11, 3.0)), where.origin.batch(0))
        writer.write(updates((1, 60, None)), where.origin.batch(1))
    sink.archive(where, "20260301T000000Z")
    with closing(sink.open(where)) as writer:
        writer.write(fares((1, 1.0), (2, 2.0)), where.origin.batch(0))
    values = {"ride": ("1", "none"), "email": ("ann",)}

    counted = sink.erase(where, values, dry_run=True)

    assert counted == sink.erase(where, values, dry_run=False)
    assert counted == (3 if sink is APPEND else 1)
    assert sink.erase(where, values, dry_run=True) == 0
    with connected() as connection:
        left = connection.execute(
            "SELECT ride FROM fares UNION ALL SELECT ride FROM fares_removed_20260301t000000z"
        ).fetchall()
    assert sorted(left) == [(2,), (2,), (11,)]


def test_m014_a_target_outside_that_is_not_there_has_no_rows(where: SinkContext) -> None:
    assert APPEND.erase(where, {"ride": ("1",)}, dry_run=False) == 0
