"""Products whose changes reach a table, a database and a search index: all end at the newest state.

Changes come out of order and again, runs are killed between any two sinks, and the index is down
now and then.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rivermark import Output
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import rows_of
from rivermark.sinks import DeltaUpsert, PostgresUpsert, WebhookSink
from rivermark.sinks.output import OutputWriter
from tests.kills import Killed, Killer
from tests.product_world import PRODUCTS, SearchIndex, changes, newest
from tests.seeds import seeds
from tests.unit.sinks.conftest import connected, context
from tests.web_service import serving

STEPS = (
    *("upsert_writer.commit_properties", "upsert_writer.write_checksum", "webhook.pause_before"),
    *("postgres.target.Target.held", "postgres.target.Target.note"),
)


@pytest.mark.filterwarnings("ignore:<psycopg:ResourceWarning")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("seed", seeds(2, 8))
def test_every_target_ends_at_the_newest_version_of_each_product(
    tmp_path: Path, new_schema: Callable[[], None], killer: Killer, seed: int
) -> None:
    for step in STEPS:
        killer.before(f"rivermark.sinks.{step}")
    killer.patch.setattr("rivermark.sinks.webhook.time.sleep", lambda _: None)
    rng = random.Random(seed)
    log = changes(rng, products=12)
    batches = [log[start : start + 7] for start in range(0, len(log), 7)]
    index, lake = SearchIndex(rng), Lake(str(tmp_path))
    create_table(lake, PRODUCTS)
    origin = context(lake).origin
    with serving(index.take) as service:
        sinks = (
            DeltaUpsert(version="version", deleted="deleted"),
            PostgresUpsert(
                table="products", database="$TEST_DATABASE", version="version", deleted="deleted"
            ),
            WebhookSink(url=service.url, attempts=20),
        )
        output = Output(PRODUCTS, sinks=sinks)
        done, kills = 0, 0
        while done < len(batches):
            killer.steps, killer.due = 0, rng.randint(1, 30) if kills < 6 else None
            try:
                writer = OutputWriter(lake, output, origin)
                while done < len(batches):
                    writer.write(rows_of(PRODUCTS, batches[done]), done, {})
                    done += 1
            except Killed:
                kills += 1
                # What was checkpointed is repeated as well, as after a power failure.
                done = max(0, done - rng.randint(0, 1))
        writer.close()
        assert kills

    expected = newest(log)
    assert len(expected) < 12
    table = DeltaTable(lake.path(PRODUCTS)).to_pyarrow_table().to_pylist()
    assert {row["sku"]: row for row in table} == expected
    names = PRODUCTS.schema.fieldNames()
    with connected() as connection:
        cursor = connection.execute(f"SELECT {', '.join(names)} FROM products")  # noqa: S608
        assert {row[0]: dict(zip(names, row, strict=True)) for row in cursor} == expected
    assert index.products == expected
