"""The contract of every sink with batches that are too large for the driver, on a Spark session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from rivermark.lake.lake import Lake
from rivermark.lake.rows_in_files import InFiles
from rivermark.model.sink import Sink
from rivermark.sinks import PostgresAppend, PostgresUpsert
from rivermark.sinks.postgres import staging
from rivermark.sinks.undelivered import undelivered_of, waiting_in
from tests import sink_contract
from tests.sink_contract import Target
from tests.spark.kafka import test_sink as kafka
from tests.unit.sinks import test_sink_contract as tables
from tests.unit.sinks import test_webhook as webhook
from tests.unit.sinks.conftest import (
    FARES,
    by_ride,
    connected,
    context,
    fares,
    new_schema,
    two_days,
)

__all__ = ["new_schema"]
pytestmark = [
    pytest.mark.spark,
    # A process that is killed closes nothing.
    pytest.mark.filterwarnings("ignore:<psycopg:ResourceWarning"),
]
APPEND = PostgresAppend(table="fares", database="$TEST_DATABASE")
UPSERT = PostgresUpsert(table="fares", database="$TEST_DATABASE", version="at", deleted="gone")


@pytest.fixture(autouse=True)
def _large(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_contract, "LARGE", True)


@pytest.mark.long
class TestTables(tables.TestTables):
    """Tables and files, of which tasks write what they can."""


class TestWebhook(webhook.TestContract):
    """Requests, which the driver sends piece by piece."""


class TestTopics(kafka.TestContract):
    """Messages, which the driver sends piece by piece in its transaction."""


@pytest.fixture
def target(new_schema: Callable[[], None], tmp_path: Path) -> Target:
    where = context(Lake(str(tmp_path)))
    return Target(APPEND, where, lambda: tables.of_postgres(where))


@pytest.fixture
def by_driver(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """The pieces that the driver has asked for."""
    pieces = Mock(side_effect=InFiles.pieces, autospec=True)
    monkeypatch.setattr(InFiles, "pieces", lambda *args: pieces(*args))
    return pieces


def staged_tables() -> list[str]:
    with connected() as connection:
        found = connection.execute("SELECT relname FROM pg_class WHERE relname LIKE '%staged%'")
        return [name for (name,) in found]


@pytest.mark.parametrize(
    ("sink", "kept"), [(APPEND, []), (UPSERT, [(3, 3.0)])], ids=["append", "upsert"]
)
def test_no_row_of_a_large_batch_passes_through_the_driver_on_its_way_to_postgres(
    sink: Sink, kept: list[tuple[int, float]], target: Target, by_driver: Mock
) -> None:
    target = Target(sink, target.where, target.rows)
    target.write(two_days(), 0)
    target.write(fares((3, 3.0)), 1)
    target.replace(fares((1, 7.0)))

    assert by_driver.call_count == 0
    assert [(r["ride"], r["fare"]) for r in by_ride(target.rows())] == [(1, 7.0), (2, 2.0), *kept]
    assert staged_tables() == []


def test_what_the_database_refuses_of_a_large_batch_is_found_by_the_driver(
    target: Target, by_driver: Mock
) -> None:
    target.write(two_days(), 0)
    with connected() as connection:
        connection.execute("ALTER TABLE fares ADD CHECK (fare < 5)")
    target.write(fares((3, 3.0), (4, 9.0)), 1)

    assert by_driver.call_count == 1
    assert [r["ride"] for r in by_ride(target.rows())] == [1, 2, 3]
    [refused] = waiting_in(Lake(target.where.root), undelivered_of(FARES))
    assert '"ride":4' in refused["body"]
    assert staged_tables() == []


def test_rows_that_the_database_lost_before_they_were_put_are_sent_by_the_driver(
    target: Target, by_driver: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a crash of the server empties a table without a log."""
    is_whole = staging.Staged.is_whole

    def crash(staged: staging.Staged, connection: psycopg.Connection) -> bool:
        connection.execute(psycopg.sql.SQL("TRUNCATE {}").format(staged.table))
        return is_whole(staged, connection)

    monkeypatch.setattr(staging.Staged, "is_whole", crash)
    target.write(two_days(), 0)
    assert by_driver.call_count == 1
    assert by_ride(target.rows()) == by_ride(two_days())


def test_a_piece_counts_once_and_what_a_kill_leaves_is_dropped_at_the_next_start(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task may be tried again though its rows are committed."""
    copied = staging._copied

    def twice(*args: Any) -> list[pa.RecordBatch]:
        copying, session, stage, batches = args
        kept = [*batches]
        return [[*copied(copying, session, stage, kept)] for _ in range(2)][-1]

    monkeypatch.setattr(staging, "_copied", twice)
    monkeypatch.setattr(staging, "drop", lambda *_: None)
    target.write(two_days(), 0)
    assert by_ride(target.rows()) == by_ride(two_days())
    assert len(staged_tables()) == 1
    monkeypatch.undo()
    assert target.open().last() == target.batch(0)
    assert staged_tables() == []


def test_an_account_that_may_create_no_table_has_the_driver_send_the_rows(
    target: Target, by_driver: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_PASSWORD", "w")
    target.write(fares((1, 1.0)), 0)
    assert by_driver.call_count == 0
    with connected() as connection:
        connection.execute(
            "DROP ROLE IF EXISTS writer; CREATE ROLE writer LOGIN PASSWORD 'w'; "
            "GRANT USAGE ON SCHEMA public TO writer; "
            "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO writer; "
            "REVOKE CREATE ON SCHEMA public FROM PUBLIC"
        )
    sink = replace(APPEND, settings={"user": "writer", "password": "$TEST_PASSWORD"})
    Target(sink, target.where, target.rows).write(fares((2, 2.0)), 1)
    assert by_driver.call_count == 1
    assert [row["ride"] for row in by_ride(target.rows())] == [1, 2]
