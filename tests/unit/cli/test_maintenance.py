"""`rivermark upkeep` says what it did, or would do, with numbers before and after."""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from rivermark.lake.schema import create_table
from rivermark.model.topology import Topology
from rivermark.settings import Settings
from tests.unit.cli.conftest import NOON, ORDERS, Run


def orders(settings: Settings, commits: int) -> str:
    """The table of orders after so many small commits."""
    create_table(settings.lake(), ORDERS.admitted)
    path = settings.lake().path(ORDERS.admitted)
    schema = DeltaTable(path).to_pyarrow_dataset().schema
    for n in range(commits):
        write_deltalake(
            path, pa.Table.from_pylist([{"order_id": n, "at": NOON}], schema), mode="append"
        )
    return path


def test_files_are_joined_and_told(rivermark: Run, shop: Topology, settings: Settings) -> None:
    path = orders(settings, 12)

    result = rivermark("upkeep")

    assert result.exit_code == 0
    assert "every version of the last 7 days stays readable" in result.stdout
    [line] = [li for li in result.stdout.splitlines() if li.split()[:1] == ["shop/orders"]]
    assert line.split()[1:5] == ["12", "0", "13", "12"]
    assert len(DeltaTable(path).file_uris()) == 1


def test_a_dry_run_says_so_and_changes_nothing(
    rivermark: Run, shop: Topology, settings: Settings
) -> None:
    path = orders(settings, 12)

    result = rivermark("upkeep", "shop/orders", "--dry-run")

    assert result.stdout.startswith("dry run, ")
    assert len(DeltaTable(path).file_uris()) == 12
