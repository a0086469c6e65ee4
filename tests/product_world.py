"""Products whose changes come out of order and again, and a search index that takes them."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

from rivermark import Table
from tests.web_service import Reply, Request

Change = dict[str, Any]

PRODUCTS = Table(
    name="test/products",
    schema="sku string, version long, name string, price decimal(10,2), deleted boolean",
    description="Products as they are now.",
    keys=("sku",),
)


def changes(rng: random.Random, products: int) -> list[Change]:
    """A log of changes: products come, change, go, and some come back; each has its version.

    Of each product a deletion may come before the updates that are older, and some changes come
    again.
    """
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
    log += rng.sample(log, len(log) // 10)
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
