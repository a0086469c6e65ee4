"""A PostgreSQL that fails while a batch is written: its rows are there once, or it is said why."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from rivermark import RivermarkError
from rivermark.connect import postgres as client
from rivermark.connect.postgres import Database
from rivermark.lake.lake import Lake
from rivermark.model.sink import SinkContext
from rivermark.runtime.supervision.error_classes import explain
from rivermark.sinks import PostgresAppend, PostgresUpsert
from rivermark.sinks.postgres.target import Target
from rivermark.testing import wait_until
from setup.postgres_server import PostgresServer
from tests.unit.sinks.conftest import connected, context, fares

APPEND = PostgresAppend(table="fares", database="$TEST_DATABASE")
UPSERT = PostgresUpsert(table="fares", database="$TEST_DATABASE", version="at")
BATCH = fares(*((n, 1.0) for n in range(500)))
WRITTEN = [(n, 1.0) for n in range(500)]
pytestmark = [
    pytest.mark.usefixtures("new_schema"),
    # Writers of tests that end with an error.
    pytest.mark.filterwarnings("ignore:<psycopg:ResourceWarning"),
]


@pytest.fixture
def where(tmp_path: Path) -> SinkContext:
    return context(Lake(str(tmp_path)))


@pytest.fixture
def visitor(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The settings of an account that may connect once, and own tables."""
    monkeypatch.setenv("VISITOR_PASSWORD", "hunter2")
    execute(
        "DROP ROLE IF EXISTS visitor; GRANT ALL ON SCHEMA public TO PUBLIC; "
        "CREATE ROLE visitor LOGIN CONNECTION LIMIT 1 PASSWORD 'hunter2'"
    )
    yield {"user": "visitor", "password": "$VISITOR_PASSWORD"}
    execute("DROP OWNED BY visitor; DROP ROLE visitor")


def execute(text: str) -> None:
    with connected() as connection:
        connection.execute(text)


def rows() -> list[tuple[int, float]]:
    with connected() as connection:
        return connection.execute("SELECT ride, fare FROM fares ORDER BY 1").fetchall()


def fail_once(action: str) -> None:
    """Let the first row that reaches the table do something; a sequence knows no rollback."""
    execute(
        "CREATE SEQUENCE calls; CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ "
        f"BEGIN IF nextval('calls') = 1 THEN {action}; END IF; RETURN NEW; END $$; "
        "CREATE TRIGGER fail BEFORE INSERT ON fares FOR EACH ROW EXECUTE FUNCTION fail()"
    )


def test_a_server_that_crashes_within_a_batch_has_its_rows_once(
    where: SinkContext, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = UPSERT.open(where)
    note = Target.note
    crashes: list[object] = []

    def crash_once(*arguments: object) -> None:
        """All rows are in the table, and the transaction is open."""
        if not crashes:
            process = postgres.process()
            assert process is not None
            process.send_signal(signal.SIGQUIT)
            process.wait(30)
            postgres.start()
            crashes.append(process)
        note(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Target, "note", crash_once)
    writer.write(BATCH, where.origin.batch(0))
    writer.close()
    assert crashes
    assert rows() == WRITTEN


@pytest.mark.parametrize(
    ("sink", "code"),
    [(APPEND, "40P01"), (UPSERT, "40001"), (APPEND, "53300"), (UPSERT, "57P05")],
    ids=["deadlock", "serialization failure", "too many connections", "idle session"],
)
def test_a_transaction_that_has_to_give_way_is_made_again(
    where: SinkContext, sink: PostgresAppend | PostgresUpsert, code: str
) -> None:
    writer = sink.open(where)
    fail_once(f"RAISE EXCEPTION 'no' USING ERRCODE = '{code}'")
    writer.write(BATCH, where.origin.batch(0))
    writer.close()
    assert rows() == WRITTEN


@pytest.mark.long
def test_a_batch_and_another_transaction_that_wait_for_each_other_both_come_through(
    where: SinkContext,
) -> None:
    import psycopg

    writer = UPSERT.open(where)
    writer.write(fares((1000, 1.0)), where.origin.batch(0))
    writing = Thread(target=writer.write, args=(BATCH, where.origin.batch(1)))
    with connected() as other, suppress(psycopg.errors.DeadlockDetected), other.transaction():
        # The one that looks first gives way: the batch, a second after it began to wait.
        other.execute("SET LOCAL deadlock_timeout = '10s'; LOCK TABLE fares")
        writing.start()
        wait_until(lambda: backends("AND wait_event_type = 'Lock'"), reason="the batch waits")
        other.execute("UPDATE rivermark_batches SET written_at = NULL")
    writing.join()
    writer.close()
    assert rows() == [*WRITTEN, (1000, 1.0)]


@pytest.mark.parametrize(
    ("sink", "option", "action", "reason"),
    [
        pytest.param(
            UPSERT,
            "statement_timeout=1s",
            "PERFORM pg_sleep(600)",
            "canceling statement due to statement timeout",
            marks=pytest.mark.long,
        ),
        (
            UPSERT,
            "search_path=public",
            "PERFORM pg_cancel_backend(pg_backend_pid()); PERFORM pg_sleep(600)",
            "canceling statement due to user request",
        ),
        (
            APPEND,
            "lock_timeout=100ms",
            "PERFORM pg_advisory_xact_lock(1)",
            "canceling statement due to lock timeout",
        ),
        (
            UPSERT,
            "search_path=public",
            "RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'",
            "could not extend file",
        ),
    ],
    ids=["statement timeout", "cancelled", "lock timeout", "disk full"],
)
def test_what_a_server_will_not_do_is_in_the_runs_error_and_the_next_start_repeats_it(
    where: SinkContext, sink: PostgresAppend | PostgresUpsert, option: str, action: str, reason: str
) -> None:
    writer = replace(sink, settings={"options": f"-c {option}"}).open(where)
    fail_once(action)
    refusal = f"stream 'test/fares' cannot write batch 0 at PostgreSQL .*: {reason}$"
    with connected() as other:
        other.execute("SELECT pg_advisory_lock(1)")
        with pytest.raises(RivermarkError, match=refusal) as raised:
            writer.write(BATCH, where.origin.batch(0))
    assert explain(raised.value).restartable
    assert rows() == []
    writer.close()
    writer = sink.open(where)
    writer.write(BATCH, where.origin.batch(0))
    writer.close()
    assert rows() == WRITTEN


@pytest.mark.long
def test_a_connection_that_the_server_closed_while_it_rested_is_made_again(
    where: SinkContext,
) -> None:
    writer = replace(APPEND, settings={"options": "-c idle_session_timeout=1s"}).open(where)
    writer.write(BATCH, where.origin.batch(0))
    wait_until(lambda: not backends(), reason="the server has closed it")
    writer.write(fares((500, 1.0)), where.origin.batch(1))
    writer.close()
    assert rows() == [*WRITTEN, (500, 1.0)]


def backends(which: str = "") -> list[tuple[int]]:
    query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'rivermark test/fares' "
    with connected() as connection:
        return connection.execute(query + which).fetchall()


def test_a_server_without_a_connection_left_is_waited_for_and_then_named(
    where: SinkContext, visitor: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    sink = replace(APPEND, settings=visitor)
    settings = Database("$TEST_DATABASE", visitor).connection_settings("another")
    other = psycopg.connect(**settings)
    with monkeypatch.context() as patch:
        patch.setattr(client, "PATIENCE_SECONDS", 0.3)
        full = r"'test/fares' cannot open its table at .*too many connections for role \"visitor\""
        with pytest.raises(RivermarkError, match=full) as raised:
            sink.open(where)
    assert explain(raised.value).restartable
    assert "hunter2" not in str(raised.value)
    sleep = time.sleep

    def leave(seconds: float) -> None:
        other.close()
        sleep(seconds)

    monkeypatch.setattr("rivermark.connect.postgres.time.sleep", leave)
    writer = sink.open(where)
    writer.write(BATCH, where.origin.batch(0))
    writer.close()
    assert rows() == WRITTEN


@pytest.mark.parametrize(
    "text",
    [
        "FATAL:  sorry, too many clients already",
        "FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute",
        'FATAL:  too many connections for database "shop"',
        "FATAL:  no more connections allowed (max_client_conn)",
    ],
)
def test_servers_and_pools_without_a_connection_left_are_recognised(text: str) -> None:
    assert client.FULL.search(text)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ops:hun@ter2@127.0.0.1/postgres",
        "postgresql://ops:hun/ter2@127.0.0.1/postgres",
        "postgresql://ops:12/ter2@127.0.0.1/postgres",
        "host=127.0.0.1 password=hun ter2",
    ],
)
def test_a_password_that_breaks_its_address_is_not_shown(
    where: SinkContext, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("SHOP", address)
    refusal = r"^the address of PostgreSQL \$SHOP is no .* in a password, @ is written %40"
    with pytest.raises(RivermarkError, match=refusal) as raised:
        replace(APPEND, database="$SHOP").open(where)
    assert not re.search("hun|ter2", str(raised.value))
