"""The example notebook runs from its first cell to its last, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from assets.topology import TOPOLOGY
from rivermark.settings import Settings
from tests.oracles.shop import append
from tests.unit.ask.conftest import NOON

pytest.importorskip("matplotlib", reason="the notebook draws by matplotlib")
pytest.importorskip("polars", reason="the notebook asks by Polars")

NOTEBOOK = Path(__file__).parents[3] / "docs" / "how-to" / "ask-tables.ipynb"
SHOWN = """
print(len(by_driver), high.num_rows, boroughs.rows(), len(axes.patches), axes.get_title())
print(winners.arrow().num_rows - first.arrow().num_rows)
"""


def test_the_notebook_asks_tables_of_the_demo(settings: Settings, tmp_path: Path) -> None:
    """As nbclient would, but without a kernel: cells one after the other in one namespace."""
    winners, trips = TOPOLOGY.table("taxi/hourly_winners"), TOPOLOGY.table("taxi/trips")
    for hour, tips in ((0, "40.00"), (1, "72.50")):
        start = NOON + timedelta(hours=hour)
        end = start + timedelta(hours=1)
        row = {"window_start": start, "window_end": end, "driver_id": 7, "tips": Decimal(tips)}
        append(settings, winners, [row])
    fares = [("Queens", "10.00"), ("Queens", "20.00"), ("Bronx", "8.00")]
    append(
        settings,
        trips,
        [{"pickup_at": NOON, "pickup_borough": b, "fare": Decimal(fare)} for b, fare in fares],
    )
    notebook = json.loads(NOTEBOOK.read_text())
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]

    done = subprocess.run(
        [sys.executable, "-c", "\n".join([*cells, SHOWN])],
        cwd=tmp_path,
        env={**os.environ, "RIVERMARK_HOME": str(settings.home), "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == (
        "1 1 [('Queens', 2, Decimal('15.00')), ('Bronx', 1, Decimal('8.00'))] "
        "2 Tips of the best driver in each hour"
    )
    assert second == "1"
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert all(not c.get("outputs") for c in notebook["cells"]), "kept without outputs"
