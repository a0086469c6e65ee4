"""Examples of pages that stand for themselves can be declared as they are written."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from assets.ads.ingest import AD_CLICKS
from rivermark import Domain, Ingest, Output, Plot, Stream, Table, Topology
from tests.oracles.cafe import orders

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
DAYS = Domain("shop", first_day=date(2024, 1, 1)).days("window_end")
TABLE = Table(
    name="shop/results",
    schema="driver_id long, updated_at timestamp, window_end timestamp, status string",
    description="What the pages on sinks call TABLE and LATEST.",
    keys=("driver_id",),
    days=DAYS,
)
UNDECLARED = {"index.md", "delta-append.md"}
SINKS = sorted({page.name for page in (DOCS / "sinks").glob("*.md")} - UNDECLARED)


def declared_on(page: str, **names: Any) -> dict[str, Any]:
    """What the examples of a page define, where it takes `names` as known."""
    for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL):
        exec(block, names)  # noqa: S102 - a page of this repository
    return names


def table(name: str, columns: str) -> Table:
    """A table of a shop."""
    return Table(name=f"shop/{name}", schema=columns, description="A table of the page.")


@pytest.mark.parametrize("page", SINKS)
def test_the_sinks_of_a_page_can_be_declared(page: str) -> None:
    declared = declared_on(f"sinks/{page}", TABLE=TABLE, LATEST=TABLE)

    assert any(isinstance(value, Output) for value in declared.values())


def test_the_lines_beside_which_a_stream_is_added_are_there() -> None:
    page = (DOCS / "concepts" / "your-own-stream.md").read_text()
    topology = (ROOT / "assets" / "topology.py").read_text().splitlines()
    changes = "".join(re.findall(r"```diff\n(.*?)```", page, re.DOTALL)).splitlines()
    beside = [line[1:] for line in changes if line.startswith(" ")]

    assert len(beside) == 2
    assert [line for line in beside if line not in topology] == []


def test_the_ingests_of_the_page_on_event_time_can_be_declared() -> None:
    declared = declared_on("concepts/event-time.md")

    assert {value.name for value in declared.values() if isinstance(value, Ingest)} == {
        "example/readings",
        "example/trucks",
    }


def test_the_stream_that_looks_rows_up_can_be_declared() -> None:
    columns = "ad_id string, event_time timestamp"
    declared = declared_on(
        "concepts/enrichment.md",
        CLICKS=AD_CLICKS,
        CAMPAIGN_CLICKS=table("campaign_clicks", columns),
        FAILED_CLICKS=table("failed_clicks", columns),
    )

    assert isinstance(declared["ENRICHED"], Stream)


def test_the_plots_of_the_page_can_be_declared() -> None:
    def writing(name: str, columns: str) -> Stream:
        return Stream(
            reads=(shop,), build=lambda rows: rows, writes=table(name, columns), group="shop"
        )

    shop = orders(name="shop/orders", group="shop")
    sales = writing("sales", "shop string, amount double")
    hourly = writing("hourly", "window_start timestamp, celsius double, sensor_id string")
    gaps = writing("gaps", "last_before timestamp, first_after timestamp")
    streams = (shop, sales, hourly, gaps)
    declared = declared_on(
        "how-to/plot-a-result.md",
        ORDERS=shop,
        SALES=sales,
        HOURLY=hourly,
        GAPS=gaps,
        STREAMS=streams,
    )

    topology = declared["TOPOLOGY"]
    assert isinstance(topology, Topology)
    assert len(topology.plots) == len([p for p in declared["PLOTS"] if isinstance(p, Plot)]) == 3
