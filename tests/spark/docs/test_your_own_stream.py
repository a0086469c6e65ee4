"""The page that teaches how to add a stream is run as it stands."""

from __future__ import annotations

import re
import sys
import types
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermark.model.topology import Topology
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from rivermark.testing.landing import land

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "concepts" / "your-own-stream.md"
HOW_TO_TEST = DOCS / "how-to" / "test-a-stream.md"


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The module of the page, imported under its own name."""
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)[0]
    assert len([line for line in code.splitlines() if line.strip()]) < 40
    module = types.ModuleType("shop_orders")
    monkeypatch.setitem(sys.modules, "shop_orders", module)
    exec(compile(code, str(PAGE), "exec"), module.__dict__)  # noqa: S102 - our own page
    return module


def test_the_test_of_its_build_passes(
    shop: types.ModuleType, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "assets.shop.orders", shop)
    (code,) = re.findall(r"```python\n(.*?)```", HOW_TO_TEST.read_text(), re.S)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - our own page

    names["test_sales_are_summed_per_country"](spark)


def test_the_stream_of_the_page_runs_and_sums(
    shop: types.ModuleType, spark: SparkSession, settings: Settings
) -> None:
    folder = Path(settings.landing_root) / "shop" / "orders"
    land(
        folder / "a.json",
        [
            '{"order_id": 1, "timestamp": "2024-03-01T10:01:00Z", "country": "DE", "total": 9.95}',
            '{"order_id": 2, "timestamp": "2024-03-01T10:02:00Z", "country": "DE", "total": 0.10}',
            '{"order_id": 3, "timestamp": "2024-03-01T10:02:00Z", "total": 5}',
            '{"order_id": 4, "timestamp": "2024-03-01T10:40:00Z", "country": "FR", "total": 1}',
        ],
    )

    done = run_bounded(spark, settings, Topology(shop.STREAMS), shop.STREAMS, run_id="page")

    sales = spark.read.format("delta").load(settings.lake().path("shop/sales"))
    assert [(r["country"], r["sales"]) for r in sales.collect()] == [("DE", Decimal("10.05"))]
    assert (done["shop/orders"].admitted, done["shop/orders"].quarantined) == (3, 1)
