"""The extremes of each type on pages: each is drawn, or left out, and stays text."""

from __future__ import annotations

from itertools import product
from typing import Literal

import pytest
from deltalake import DeltaTable

from rivermark import Plot, expect
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import append_rows
from rivermark.model.topology import Topology
from rivermark.monitor.dashboard.failing_rows import draw
from rivermark.monitor.published_results import charts_of_results
from rivermark.quality.failing_rows import evidence_of
from rivermark.settings import Settings
from tests.unit.model.declared import stream
from tests.unit.monitor.dashboard.test_dashboard import HOSTILE, Page
from tests.unit.sinks.test_extremes import EVERY, rows

NUMBERS = ("byte", "short", "int", "long", "float", "double", "money", "large")


@pytest.fixture
def table(settings: Settings) -> DeltaTable:
    """A table of the extremes, and of a text that would be markup."""
    lake = settings.lake()
    create_table(lake, EVERY)
    hostile = {"id": 99, "text": HOSTILE, "raw": HOSTILE.encode()}
    append_rows(lake, EVERY, [*rows().to_pylist(), hostile], {})
    return DeltaTable(lake.path(EVERY))


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(("kind", "combine"), [("bars", "sum"), ("line", "mean")])
def test_every_column_can_be_plotted_over_every_other(
    settings: Settings, kind: Literal["bars", "line"], combine: Literal["sum", "mean"]
) -> None:
    over = EVERY.schema.fieldNames() if kind == "bars" else ["day", "at"]
    plots = [
        Plot(title=f"{y} over {x}", table=EVERY, x=x, y=y, kind=kind, combine=combine)
        for x, y in product(over, ("long", "double", "money"))
    ]
    charts = charts_of_results(settings, Topology([stream(EVERY.name, writes=EVERY)], plots=plots))
    assert [each.note for each in charts if "cannot be drawn" in (each.note or "")] == []


def test_every_row_is_shown_among_those_that_break_a_rule(table: DeltaTable) -> None:
    (rule,) = expect.no_rows_where("id >= 0", name=HOSTILE)
    evidence = evidence_of(table.to_pyarrow_dataset(), EVERY, [rule], version=1, limit=100)
    (failing,) = evidence.failing
    assert len(failing.rows) == rows().num_rows + 1
    page = Page(draw(evidence))
    assert page.open == []
    # Names and values of rows are text, beside the one script of the page.
    assert len(page.all("script")) == 1
    assert all(not attributes for attributes in page.all("b"))
    shown = [text for _, text in page.texts]
    for value in ("9223372036854775807", "0001-01-01", "9999-12-31", "NaN", "9" * 38, HOSTILE):
        assert any(value in text for text in shown), value
