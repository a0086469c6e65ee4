"""`rivermark erase` shows what would go, asks, and says what it does not reach (M014)."""

from __future__ import annotations

import json
from pathlib import Path

from deltalake import DeltaTable

from rivermark.model.topology import Topology
from rivermark.settings import Settings
from tests.unit.cli.conftest import NOON, ORDERS, Run
from tests.unit.conftest import Put


def put_orders(put: Put) -> None:
    for n, customer in enumerate(("ann", "bob")):
        place = {"_file": "a.json", "_ingest_batch": n, "_row": n}
        put(ORDERS.admitted, {"order_id": n, "at": NOON, "customer": customer, **place})
        put(ORDERS.raw, place | {"payload": json.dumps({"customer": customer})})


def customers(settings: Settings) -> list[str]:
    orders = DeltaTable(settings.lake().path(ORDERS.admitted)).to_pyarrow_table()
    return sorted(orders["customer"].to_pylist())


def test_m014_nothing_goes_without_a_yes(
    rivermark: Run, shop: Topology, settings: Settings, put: Put
) -> None:
    put_orders(put)

    asked = rivermark("erase", "customer=ann", input="n\n")

    assert asked.exit_code == 1
    assert "would be erased" in asked.stdout
    assert customers(settings) == ["ann", "bob"]


def test_m014_a_file_names_the_person_and_the_document_says_what_went(
    rivermark: Run, shop: Topology, settings: Settings, put: Put, tmp_path: Path
) -> None:
    put_orders(put)
    file = tmp_path / "person.txt"
    file.write_text("customer=ann\n\ncustomer=nobody\n")

    done = rivermark("erase", "--from", str(file), "--yes", "--json")

    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert {each["place"]: each["rows"] for each in document["places"]} == {
        "shop/orders": 1,
        "shop/orders_raw": 1,
    }
    assert document["pending"] == {"shop/busiest": ["2026-03-02"], "shop/hourly": ["2026-03-02"]}
    assert "ann" not in done.stdout
    assert customers(settings) == ["bob"]


def test_m014_what_names_nobody_is_wrong_use(
    rivermark: Run, shop: Topology, tmp_path: Path
) -> None:
    for arguments in ((), ("at=2026",), ("--from", str(tmp_path / "none.txt"))):
        assert rivermark("erase", *arguments, "--yes").exit_code == 2
