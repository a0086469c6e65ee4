"""Reference data in PostgreSQL: when it is read again, and what a repeated batch reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.sql import SparkSession

from rivermark import DeclarationError, RivermarkError
from rivermark.ingest.source import postgres as module
from rivermark.model.source import PlannedSplit, SourceReader, Split
from rivermark.sources import PostgresSource
from setup.postgres_server import PostgresServer

if TYPE_CHECKING:
    from psycopg import Connection

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
    assert {row["name"] for row in records(reader, second)} == {"new"}
    assert records(reader, first)[0] == {
        "id": 1,
        "name": "store 1",
        "rent": "0.33333333333333333333",
        "changed_at": "2024-03-01T12:00:00Z",
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


def test_a_read_of_which_only_a_part_was_planned_is_done_again(
    shop: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS_A_SPLIT", 2)
    reader = reader_of(STORES)
    parts = poll(reader)
    assert [len(records(reader, part)) for part in parts] == [2, 2, 1]
    reader.close()
    killed = reader_of(STORES, *parts[:2])
    again = poll(killed)
    assert [split.name for split in again] == [f"read-00000001-{n:04d}" for n in range(3)]
    killed.close()
    shop.execute("DELETE FROM shop.stores")
    emptied = reader_of(STORES, *parts, *again)
    [nothing] = poll(emptied)
    assert records(emptied, nothing) == []
    assert poll(emptied) == []
    emptied.close()


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
