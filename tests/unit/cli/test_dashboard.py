from pathlib import Path

from rivermark.model.topology import Topology
from tests.unit.cli.conftest import NOON, ORDERS, Run
from tests.unit.conftest import Put


def test_the_dashboard_is_one_file(
    rivermark: Run, shop: Topology, put: Put, tmp_path: Path
) -> None:
    put(ORDERS.admitted, {"order_id": 1, "at": NOON, "customer": "Ada"})
    page = tmp_path / "page.html"

    found = rivermark("dashboard", "--out", str(page))

    assert found.exit_code == 0, found.output
    assert f"page: {page}" in found.output
    text = page.read_text()
    assert "shop/orders" in text
    assert "Ada" not in text


def test_it_may_leave_the_checks_as_they_are(rivermark: Run, shop: Topology, put: Put) -> None:
    put(ORDERS.admitted, {"order_id": 1, "at": NOON})

    found = rivermark("dashboard", "--no-checks")

    assert "0 of 0 checks failed" in found.output
