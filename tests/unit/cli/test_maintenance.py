"""`rivermark upkeep` says what it did, or would do, with numbers before and after."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from rivermark.model.topology import Topology
from rivermark.settings import Settings
from tests.unit.cli.conftest import NOON, ORDERS, Run
from tests.unit.conftest import Put


@pytest.fixture
def orders(settings: Settings, put: Put) -> str:
    """The table of orders after twelve small commits."""
    for n in range(12):
        put(ORDERS.admitted, {"order_id": n, "at": NOON})
    return settings.lake().path(ORDERS.admitted)


def test_files_are_joined_and_told(rivermark: Run, shop: Topology, orders: str) -> None:
    result = rivermark("upkeep")

    assert result.exit_code == 0
    assert "every version of the last 7 days stays readable" in result.stdout
    [line] = [li for li in result.stdout.splitlines() if li.split()[:1] == ["shop/orders"]]
    assert line.split()[1:5] == ["12", "0", "13", "12"]
    assert len(DeltaTable(orders).file_uris()) == 1


def test_a_dry_run_says_so_and_changes_nothing(rivermark: Run, shop: Topology, orders: str) -> None:
    result = rivermark("upkeep", "shop/orders", "--dry-run")

    assert result.stdout.startswith("dry run, ")
    assert len(DeltaTable(orders).file_uris()) == 12
