"""Reference data in PostgreSQL: when it is read again, and what a repeated batch reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, cast

import pytest
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import SparkSession

from rivermark import Contract, DeclarationError, Field, RivermarkError
from rivermark.ingest.parse.contract_parser import ContractParser
from rivermark.ingest.source import postgres_pieces
from rivermark.model.source import PlannedSplit, SourceReader, Split
from rivermark.sources import PostgresSource
from setup.postgres_server import PostgresServer
from tests.oracles.raw_lines import lines_of

if TYPE_CHECKING:
    from psycopg import Connection

PICKLE: Final[Any] = CloudPickleSerializer()
STORES = PostgresSource(
    table="shop.stores",
    database="$TEST_DATABASE",
    version="SELECT max(changed_at) FROM shop.stores -- 100%",
)


@pytest.fixture
def shop(postgres: PostgresServer) -> Iterator[Connection]:
    import psycopg

    with psycopg.connect(postgres.database, autocommit=True) as connection:
        connection.execute(
            "DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop; CREATE TABLE shop.stores AS "
            "SELECT n AS id, 'store ' || n AS name, n / 3.0 AS rent, "
            "timestamptz '2024-03-01 12:00Z' AS changed_at FROM generate_series(1, 5) n"
        )
        yield connection
        connection.execute("DROP SCHEMA shop CASCADE")


def reader_of(source: PostgresSource, *planned: Split) -> SourceReader:
    """A reader of a run that finds these splits in the plan."""
    reader = source.open("")
    reader.restore(lambda *_: [(split.path,) for split in planned])
    return reader


def poll(reader: SourceReader) -> list[Split]:
    """What a poll plans."""
    ready = reader.discover().ready
    reader.planned(ready)
    return ready


def records(reader: SourceReader, *splits: Split) -> list[dict[str, Any]]:
    spark, planned = cast(SparkSession, None), cast(list[PlannedSplit], splits)
    parts = [each for piece in reader.pieces(spark, planned, 99) for each in reader.read(piece)]
    return [json.loads(text) for each in parts for text in each.rows["payload"].to_pylist()]


def test_no_value_of_a_column_stops_the_stream_or_is_changed(shop: Connection) -> None:
    texts = {
        "until": "timestamptz 'infinity'",
        "since": "timestamp '-infinity'",
        "far": "timestamptz '20000-01-01 00:00Z'",
        "old": "date '0044-03-15 BC'",
        "midnight": "time '24:00:00'",
        "span": "interval '1 mon 26:00:00'",
        "wide": "interval '9000000 days'",
        "address": "inet '10.0.0.1/8'",
        "doc": """jsonb '{"a": 12345678901234567890.10}'""",
        "number": "jsonb '1.10'",
        "none": "numeric 'NaN'",
        "most": "float8 'infinity'",
        "moments": "ARRAY[timestamptz '2024-03-01 12:00Z', 'infinity']",
        "usual": "timestamptz '2024-03-01 12:00Z'",
    }
    columns = ", ".join(f"{value} AS {name}" for name, value in texts.items())
    shop.execute(f"CREATE TABLE shop.wild AS SELECT 1 AS id, {columns}")
    reader = reader_of(
        replace(STORES, table="shop.wild", version="SELECT max(until) FROM shop.wild")
    )

    [row] = records(reader, *poll(reader))
    reader.close()
    assert row == {
        "id": 1,
        "until": "infinity",
        "since": "-infinity",
        "far": "20000-01-01 00:00:00+00",
        "old": "0044-03-15 BC",
        "midnight": "24:00:00",
        "span": "1 mon 26:00:00",
        "wide": "9000000 days",
        "address": "10.0.0.1/8",
        "doc": {"a": "12345678901234567890.10"},
        "number": "1.10",
        "none": "NaN",
        "most": "Infinity",
        "moments": ["2024-03-01T12:00:00Z", "infinity"],
        "usual": "2024-03-01T12:00:00Z",
    }


def test_a_table_is_read_again_when_its_version_changes_and_not_before(
    shop: Connection,
) -> None:
    reader = reader_of(STORES)
    assert reader.backlog().splits == 1
    [first] = poll(reader)
    assert poll(reader) == []
    assert reader.backlog().splits == 0
    shop.execute("UPDATE shop.stores SET name = 'unseen' WHERE id = 2")
    assert poll(reader) == []
    shop.execute("UPDATE shop.stores SET name = 'new', changed_at = changed_at + interval '1 s'")
    assert reader.backlog().splits == 1
    [second] = poll(reader)
    assert records(reader, second)[0] == {
        "id": 1,
        "name": "new",
        "rent": "0.33333333333333333333",
        "changed_at": "2024-03-01T12:00:01Z",
    }
    reader.close()
    again = reader_of(STORES, second, first)
    assert poll(again) == []
    again.close()


def test_without_a_version_a_table_is_read_again_by_the_clock(shop: Connection) -> None:
    hourly = reader_of(replace(STORES, version=None))
    [first] = poll(hourly)
    assert poll(hourly) == []
    hourly.close()
    often = reader_of(replace(STORES, version=None, every=timedelta(microseconds=1)), first)
    assert [split.name for split in poll(often)] == ["read-00000001-0000"]
    assert len(poll(often)) == 1
    often.close()


@pytest.fixture
def many(shop: Connection, monkeypatch: pytest.MonkeyPatch) -> PostgresSource:
    """A table of some blocks, of which each is a piece."""
    monkeypatch.setattr(postgres_pieces, "PIECE_BYTES", 8192)
    shop.execute(
        "CREATE TABLE shop.many AS SELECT n AS id, repeat('x', 100) AS note, "
        "1 AS place FROM generate_series(1, 500) n"
    )
    return PostgresSource(table="shop.many", database="$TEST_DATABASE")


def ids(read: list[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in read)


def test_a_read_is_one_planned_batch_of_ranges_that_hold_each_row_once(
    shop: Connection, many: PostgresSource
) -> None:
    reader = reader_of(many)
    parts = reader.discover().ready
    assert len(parts) > 5
    assert [*reader.batches(parts)] == [parts]
    assert sum(part.size for part in parts) == pytest.approx(500 * 130, rel=0.5)
    # What was added since lies behind the last one.
    shop.execute(
        "INSERT INTO shop.many SELECT n, repeat('y', 100), 1 FROM generate_series(501, 900) n"
    )
    reader.planned(parts)
    assert ids(records(reader, *parts)) == [*range(1, 901)]
    reader.close()
    killed = reader_of(many, *parts[:2])
    again = poll(killed)
    assert {split.name[:13] for split in again} == {"read-00000001"}
    shop.execute("TRUNCATE shop.many")
    assert records(killed, *again) == []
    assert poll(killed) == []
    killed.close()


@pytest.mark.parametrize("kind", ["view", "materialized view", "partitioned table", "empty"])
def test_whatever_holds_rows_is_read_whole(
    shop: Connection, many: PostgresSource, kind: str
) -> None:
    if kind == "partitioned table":
        shop.execute(
            "CREATE TABLE shop.kind (LIKE shop.many) PARTITION BY RANGE (id); "
            "CREATE TABLE shop.low PARTITION OF shop.kind FOR VALUES FROM (0) TO (100); "
            "CREATE TABLE shop.high PARTITION OF shop.kind FOR VALUES FROM (100) TO (1000); "
            "INSERT INTO shop.kind SELECT * FROM shop.many"
        )
    elif kind == "empty":
        shop.execute("CREATE TABLE shop.kind (LIKE shop.many)")
    else:
        shop.execute(f"CREATE {kind} shop.kind AS SELECT * FROM shop.many")  # noqa: S608
    reader = reader_of(replace(many, table="shop.kind"))
    parts = poll(reader)
    assert (len(parts) > 1) == (kind == "partitioned table")
    assert ids(records(reader, *parts)) == ([] if kind == "empty" else [*range(1, 501)])
    reader.close()


def test_all_ranges_are_of_one_moment_also_in_tasks(shop: Connection, many: PostgresSource) -> None:
    reader = reader_of(many)
    parts = cast(list[PlannedSplit], poll(reader))
    pieces = PICKLE.loads(PICKLE.dumps([*reader.pieces(cast(SparkSession, None), parts, 99)]))
    # Each row moves to another block.
    shop.execute("UPDATE shop.many SET place = 2; DELETE FROM shop.many WHERE id < 100")
    import psycopg

    with pytest.raises(psycopg.errors.LockNotAvailable):
        shop.execute("SET lock_timeout = '50ms'; TRUNCATE shop.many")
    read = [each for piece in pieces for each in piece.read()]
    rows = [json.loads(text) for each in read for text in each.rows["payload"].to_pylist()]
    assert ids(rows) == [*range(1, 501)]
    assert {row["place"] for row in rows} == {1}
    reader.committed(parts)
    shop.execute("SET lock_timeout = 0; TRUNCATE shop.many")
    reader.close()


def test_rows_that_an_older_release_kept_in_the_plan_are_read_from_there(shop: Connection) -> None:
    reader = reader_of(STORES)
    [part] = poll(reader)
    lines = [json.dumps({"id": n}) for n in (8, 9)]
    path = json.dumps({"read": [0, "2024-03-01", None], "part": 0, "parts": 1, "lines": lines})
    assert ids(records(reader, replace(part, path=path))) == [8, 9]
    reader.close()


KINDS = {
    "id": "1",
    "flag": "n % 2 = 0",
    "small": "n::smallint",
    "long": "9007199254740993 + n",
    "huge": "12345678901234567890123 + n",
    "amount": "(n / 4.0)::numeric(9,2)",
    "ratio": "n / 7.0",
    "real": "(n / 10.0)::real",
    "double": "n / 3.0::double precision",
    "text": "CASE n % 3 WHEN 0 THEN ' 12' WHEN 1 THEN '\"quoted\" \\' ELSE 'ü' END",
    "bytes": r"'\x00ff'::bytea",
    "day": "date '2024-02-28' + n",
    "moment": "timestamptz '2024-03-01 12:00:00.123456+02' + n * interval '1 min'",
    "wall": "timestamp '2024-03-31 01:30' + n * interval '10 min'",
    "clock": "time '12:30:00.5' + n * interval '1 min'",
    "zoned": "timetz '12:30+05:30'",
    "span": "n * interval '1 hour'",
    "uuid": "'00000000-0000-0000-0000-000000000001'::uuid",
    "doc": """jsonb_build_object('a', n, 'b', ARRAY[1.10])""",
    "list": "ARRAY[n, NULL]",
    "wild": "CASE WHEN n = 3 THEN timestamptz 'infinity' ELSE timestamptz '2024-03-01 12:00Z' END",
    "none": "NULL::int",
}
READ_AS = ("string", "long", "int", "double", "boolean", "float", "timestamp", "decimal(12,3)")


def test_columns_are_typed_as_the_payloads_of_their_rows_are(shop: Connection) -> None:
    columns = ", ".join(
        f"CASE WHEN n = 7 THEN NULL ELSE {value} END AS {name}" for name, value in KINDS.items()
    )
    shop.execute(f"CREATE TABLE shop.kinds AS SELECT {columns} FROM generate_series(0, 39) n")  # noqa: S608
    fields = tuple(
        Field(f"{name}_{n}", kind, (name,)) for name in KINDS for n, kind in enumerate(READ_AS)
    )
    contract = Contract(fields=fields)
    reader = reader_of(replace(STORES, table="shop.kinds", version=None))
    reader.expect(contract.spellings())
    [part] = cast(list[PlannedSplit], poll(reader))
    [piece] = reader.pieces(cast(SparkSession, None), [part], 99)
    [read] = reader.read(piece)
    reader.close()
    assert read.columns
    lines = lines_of(read.rows["payload"].to_pylist(), "json")
    parser = ContractParser(contract, ",")
    by_columns, by_payload = parser.parse(lines, read.columns), parser.parse(lines)
    for name in by_payload.column_names:
        assert by_columns[name].equals(by_payload[name]), name


def test_what_is_wrong_is_said(shop: Connection) -> None:
    with pytest.raises(DeclarationError, match="a password does not belong"):
        PostgresSource(table="stores", database="postgresql://u:p@h/d")
    with pytest.raises(DeclarationError, match="`every` must be above zero"):
        PostgresSource(table="stores", every=timedelta(0))
    gone = reader_of(replace(STORES, table="shop.gone"))
    with pytest.raises(
        RivermarkError, match=r'cannot read table shop\.gone at PostgreSQL .*"shop\.gone" does not'
    ):
        gone.discover()
    writing = reader_of(replace(STORES, version="DELETE FROM shop.stores RETURNING 1"))
    with pytest.raises(RivermarkError, match="read-only transaction"):
        writing.discover()
