"""Products whose changes reach a table, a database and a search index: all end at the newest state.

Changes come out of order and again, runs are killed between any two sinks, and the index is down
now and then.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from rivermark import DeltaUpsert, Output, PostgresUpsert, Table, WebhookSink
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import rows_of
from rivermark.sinks.output import OutputWriter
from tests.unit.sinks.conftest import Killed, Killer, connected, context
from tests.web_service import Reply, Request, serving

Change = dict[str, Any]

PRODUCTS = Table(
    name="test/products",
    schema="sku string, version long, name string, price decimal(10,2), deleted boolean",
    description="Products as they are now.",
    keys=("sku",),
)


def changes(rng: random.Random, products: int) -> list[Change]:
    """A log of changes: products come, change, go, and some come back; each has its version."""
    log = []
    for number in range(products):
        sku = f"p{number}"
        for version in range(1, rng.randint(2, 7)):
            log.append(
                {
                    "sku": sku,
                    "version": version,
                    "name": f"{sku} of {version}",
                    "price": Decimal(rng.randint(100, 99_999)) / 100,
                    "deleted": version > 1 and rng.random() < 0.3,
                }
            )
    rng.shuffle(log)
    return log


def newest(log: list[Change]) -> dict[str, Change]:
    """The products as they are at the end: the newest version of each, unless it is a deletion."""
    latest: dict[str, Change] = {}
    for change in log:
        if change["version"] > latest.get(change["sku"], {"version": 0})["version"]:
            latest[change["sku"]] = change
    return {sku: change for sku, change in latest.items() if not change["deleted"]}


class SearchIndex:
    """A search index with versions, as several have: what is older than it holds is ignored."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._documents: dict[str, Change] = {}

    def take(self, request: Request) -> Reply:
        """Take a change; now and then say nothing, or only after it was taken."""
        change = json.loads(request.body)
        mood = self._rng.random()
        if mood < 0.1:
            raise ConnectionError
        if change["version"] > self._documents.get(change["sku"], {"version": 0})["version"]:
            self._documents[change["sku"]] = change
        if mood < 0.2:
            raise ConnectionError
        return 200, {}

    @property
    def products(self) -> dict[str, Change]:
        """What a search finds."""
        return {
            sku: {**change, "price": Decimal(change["price"])}
            for sku, change in self._documents.items()
            if not change["deleted"]
        }


@pytest.fixture
def killer() -> Iterator[Killer]:
    made = Killer()
    for sink in (
        *("delta_upsert.commit_properties", "delta_upsert.write_checksum", "webhook.pause_before"),
        *("postgres.target.Target.held", "postgres.target.Target.note"),
    ):
        made.before(f"rivermark.sinks.{sink}")
    yield made
    made.patch.undo()


@pytest.mark.filterwarnings("ignore:<psycopg:ResourceWarning")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("seed", range(2))
def test_every_target_ends_at_the_newest_version_of_each_product(
    tmp_path: Path, new_schema: Callable[[], None], killer: Killer, seed: int
) -> None:
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
