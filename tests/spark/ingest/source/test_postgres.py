"""A table of PostgreSQL as a lookup: its newest rows, and every version that was read."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermark import Contract, Field, Ingest, PostgresSource
from setup.postgres_server import PostgresServer
from tests.spark.helpers.source_contract import Deployment

pytestmark = pytest.mark.spark


def test_its_rows_become_a_lookup_that_holds_the_newest_of_each_key(
    spark: SparkSession, postgres: PostgresServer, tmp_path: Path
) -> None:
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
    deployment = Deployment(spark, tmp_path, ingest)
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres.database, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE stores AS SELECT n AS id, 'store ' || n AS name, now() AS changed_at "
            "FROM generate_series(1, 5) n"
        )
        deployment.run()
        connection.execute("UPDATE stores SET name = 'new', changed_at = now() WHERE id = 2")
        for _ in range(2):
            deployment.run()
        connection.execute("DROP TABLE stores")
    names = {row["id"]: row["name"] for row in deployment.rows(ingest.admitted)}
    assert names == {1: "store 1", 2: "new", 3: "store 3", 4: "store 4", 5: "store 5"}
    assert len(deployment.rows(ingest.versions)) == 10
