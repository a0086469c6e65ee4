"""Changes of products from landed files to a table, a database and a search index, as a stream."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermark import Contract, Field, Ingest, Output, RivermarkError, Stream
from rivermark.settings import Settings
from rivermark.sinks import DeltaUpsert, PostgresUpsert, WebhookSink
from rivermark.sinks.postgres.target import Target
from rivermark.sources import FileSource
from setup.postgres_server import PostgresServer
from simulator.landing.json_lines import json_line
from tests.product_world import PRODUCTS, SearchIndex, changes, newest
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import TEN, run
from tests.web_service import serving

pytestmark = [pytest.mark.spark, pytest.mark.long]

NAMES = PRODUCTS.schema.fieldNames()
CHANGES = Ingest(
    name="test/product_changes",
    source=FileSource(folder="products", pattern="*.json", settle=timedelta(0)),
    contract=Contract(
        fields=(
            *(Field(f.name, f.dataType, required=True) for f in PRODUCTS.schema.fields),
            Field("changed_at", "timestamp", required=True),
        ),
        event_time="changed_at",
    ),
    # Each version may come in any file.
    lateness=timedelta(days=1),
    description="Changes of products.",
    group="test",
)


def test_every_target_ends_at_the_newest_version_of_each_product(
    spark: SparkSession,
    settings: Settings,
    landing: Landing,
    postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import psycopg

    rng = random.Random(36)
    log = changes(rng, products=12)
    index = SearchIndex(rng)
    monkeypatch.setattr("rivermark.sinks.webhook.pause_before", lambda *_: 0)
    with serving(index.take) as service:
        database = PostgresUpsert(
            table="products", database="$TEST_DATABASE", version="version", deleted="deleted"
        )
        sinks = (
            DeltaUpsert(version="version", deleted="deleted"),
            database,
            WebhookSink(url=service.url, attempts=20),
        )
        sync = Stream(
            reads=(CHANGES,),
            build=lambda rows: rows.select(*NAMES),
            writes=(Output(PRODUCTS, sinks=sinks),),
            group="test",
        )
        half = len(log) // 2
        for number, changed in enumerate((log[:half], log[half:])):
            for part, change in enumerate(changed):
                at = TEN + timedelta(minutes=change["version"])
                line = json_line({**change, "changed_at": at})
                landing.put(f"products/{number}-{part % 2}-{part:03}.json", line)
            with monkeypatch.context() as patch:
                # After the table and before the search index; the database takes it back.
                patch.setattr(Target, "note", fails_once(Target.note))
                with pytest.raises(RivermarkError, match="on its way"):
                    run(spark, settings, CHANGES, sync)
                run(spark, settings, CHANGES, sync)

    expected = newest(log)
    table = DeltaTable(settings.lake().path(PRODUCTS)).to_pyarrow_table().to_pylist()
    assert {row["sku"]: row for row in table} == expected
    with psycopg.connect(postgres.database) as connection:
        rows = connection.execute(f"SELECT {', '.join(NAMES)} FROM {database.table}").fetchall()  # noqa: S608
    assert {row[0]: dict(zip(NAMES, row, strict=True)) for row in rows} == expected
    assert index.products == expected


def fails_once(note: object) -> object:
    """The same function, which fails at its first call."""
    calls = iter([True])

    def failing(*arguments: object) -> None:
        if next(calls, False):
            raise RuntimeError("lost on its way")
        note(*arguments)  # type: ignore[operator]

    return failing
