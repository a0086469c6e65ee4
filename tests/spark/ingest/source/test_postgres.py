"""A table of PostgreSQL as a lookup: its newest rows, and every version that was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from rivermark import Contract, Field, Ingest
from rivermark.sources import PostgresSource
from setup.postgres_server import PostgresServer
from tests.kills import Killer
from tests.spark.helpers.source_contract import (
    READER_STEPS,
    Deployment,
    assert_same_tables,
    backlog,
    steps_of,
)

if TYPE_CHECKING:
    from psycopg import Connection

pytestmark = pytest.mark.spark


@pytest.fixture
def stores(postgres: PostgresServer) -> Iterator[Connection]:
    """A connection to the server, with five stores in a table."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres.database, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE stores AS SELECT n AS id, 'store ' || n AS name, now() AS changed_at "
            "FROM generate_series(1, 5) n"
        )
        yield connection
        connection.execute("DROP TABLE stores")


@pytest.fixture
def deployment(spark: SparkSession, stores: Connection, tmp_path: Path) -> Deployment:
    """The lookup of stores, with nothing read yet."""
    contract = Contract(
        fields=(Field("id", "long", required=True), Field("name", "string", required=True))
    )
    ingest = Ingest(
        name="test/stores",
        source=PostgresSource(
            table="stores", database="$TEST_DATABASE", version="SELECT max(changed_at) FROM stores"
        ),
        kind="lookup",
        keys=("id",),
        contract=contract,
        description="Stores.",
        group="test",
    )
    return Deployment(spark, tmp_path, ingest)


def names(deployment: Deployment) -> dict[int, str]:
    """What the lookup knows."""
    rows = deployment.rows(deployment.ingest.admitted)
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["name"] for row in rows}


def test_its_rows_become_a_lookup_that_holds_the_newest_of_each_key(
    deployment: Deployment, stores: Connection
) -> None:
    deployment.run()
    stores.execute("UPDATE stores SET name = 'new', changed_at = now() WHERE id = 2")
    for _ in range(2):
        deployment.run()
    expected = {n: f"store {n}" for n in (1, 2, 3, 4, 5)} | {2: "new"}
    assert names(deployment) == expected
    assert len(deployment.rows(deployment.ingest.versions)) == 10


def test_tasks_write_the_tables_that_the_driver_writes(
    deployment: Deployment, stores: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rivermark.ingest.source.postgres_pieces.PIECE_BYTES", 8192)
    stores.execute(
        "INSERT INTO stores SELECT n, repeat('x', 50) || n, now() FROM generate_series(6, 400) n; "
        "UPDATE stores SET name = NULL WHERE id % 7 = 0"
    )
    by_tasks = replace(deployment, lake_name="by_tasks")
    deployment.run()
    by_tasks.run(driver_bytes=0)
    assert len(by_tasks.plan()) > 2
    assert len(names(by_tasks)) == 400 - 400 // 7
    assert_same_tables(deployment, by_tasks)


@pytest.mark.long
def test_a_kill_before_any_step_leaves_each_row_of_a_read_once(
    deployment: Deployment, stores: Connection, killer: Killer
) -> None:
    """As of every source; none of its rows is late, and a store without a name is broken."""
    ingest = deployment.ingest
    steps_of(deployment, killer)
    deployment.run()
    due, is_killed = 0, True
    while is_killed:
        due += 1
        stores.execute("UPDATE stores SET changed_at = now(), name = %s WHERE id < 5", [f"{due}"])
        stores.execute("UPDATE stores SET name = NULL WHERE id = 5")
        is_killed = killer.kills(due, deployment.run)
        deployment.run()
        assert backlog(deployment) == 0
        assert names(deployment) == {n: str(due) for n in (1, 2, 3, 4)} | {5: "store 5"}, due
        tables = (ingest.raw, ingest.versions, ingest.quarantine)
        raw, valid, broken = ([r["_file"] for r in deployment.rows(t)] for t in tables)
        assert set(Counter(raw).values()) == {5}, due
        assert Counter(raw) == Counter([*valid, *broken]), due
        assert (len(raw), len(broken)) == (5 * (due + 1), due), due
    # As many as of other sources: no row is late, and the lookup's table is merged.
    assert due > len(READER_STEPS) + 7
