"""Declared plots are drawn from the tables' rows, in spans that people count in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql.types import LongType, StringType, StructField, StructType

from assets.topology import TOPOLOGY as DEPLOYMENT
from rivermark import Marks, Plot, Table
from rivermark.html.chart import Chart, Ranking
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import append_rows
from rivermark.model.topology import Topology
from rivermark.monitor.published_results import charts_of_results
from rivermark.settings import Settings
from tests.unit.model.declared import stream

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
TIPS = Table(
    name="test/tips",
    schema="at timestamp, day date, zone string, tips decimal(12,2)",
    description="Tips.",
)
TOPOLOGY = [stream("test/tips", writes=TIPS)]


def drawn(settings: Settings, **plot: Any) -> Chart | Ranking:
    declared = Plot(title="Tips", table=TIPS, **plot)
    [chart] = charts_of_results(settings, Topology(TOPOLOGY, plots=[declared]))
    return chart


def write(settings: Settings, hours: range) -> None:
    create_table(settings.lake(), TIPS)
    rows = [
        {
            "at": NOON + n * HOUR,
            "day": (NOON + n * HOUR).date(),
            "zone": "east" if n % 2 else "west",
            "tips": Decimal(n),
        }
        for n in hours
    ]
    append_rows(settings.lake(), TIPS, rows, {})


def test_bars_lines_and_ranks_are_of_the_rows(settings: Settings) -> None:
    write(settings, range(1, 7))
    write(settings, range(12, 13))

    bars = drawn(settings, x="at", y="tips", combine="max", unit="USD")
    counted = drawn(settings, x="day")
    ranks = drawn(settings, x="zone", y="tips")
    line = drawn(
        settings,
        x="at",
        y="tips",
        kind="line",
        combine="mean",
        by="zone",
        marks=(Marks(name="tip", table=TIPS, start="at"),),
    )

    assert isinstance(bars, Chart)
    assert bars.note == "USD, by at (UTC)"
    assert [s.title for s in bars.shapes if s.title][-1] == "2026-03-03 00:00 UTC: 12"
    assert len([s for s in bars.shapes if s.title]) == 7
    assert isinstance(counted, Chart)
    assert "at most 6 at 2026-03-02" in counted.label
    assert isinstance(ranks, Ranking)
    assert [(r.name, r.value) for r in ranks.ranks] == [("west", "24"), ("east", "9")]
    assert isinstance(line, Chart)
    assert list(line.legend.values()) == ["east", "west", "tip"]


def test_what_has_no_rows_is_left_out(settings: Settings) -> None:
    topology = Topology(
        TOPOLOGY, plots=[Plot(title="Tips", table=TIPS, x=x) for x in ("at", "zone")]
    )

    assert charts_of_results(settings, topology) == []
    create_table(settings.lake(), TIPS)
    assert charts_of_results(settings, topology) == []


def test_values_that_are_no_numbers_are_left_out(settings: Settings) -> None:
    schema = "at timestamp, name string, value double"
    odd = Table(name="test/odd", schema=schema, description="Odd.")
    create_table(settings.lake(), odd)
    rows = [
        {"at": NOON + n * HOUR, "name": str(n), "value": value}
        for n, value in enumerate((1.0, float("nan"), float("inf"), None, 2.0))
    ]
    append_rows(settings.lake(), odd, rows, {})
    plots = [
        Plot(title="Bars", table=odd, x="at", y="value"),
        Plot(title="Ranks", table=odd, x="name", y="value"),
    ]

    bars, ranks = charts_of_results(
        settings, Topology([stream("test/odd", writes=odd)], plots=plots)
    )

    assert isinstance(bars, Chart)
    assert len([s for s in bars.shapes if s.title]) == 2
    assert isinstance(ranks, Ranking)
    assert [(r.name, r.value) for r in ranks.ranks] == [("4", "2"), ("0", "1")]


def test_columns_may_be_called_anything(settings: Settings) -> None:
    schema = StructType([StructField('by "x"; --', StringType()), StructField("n", LongType())])
    odd = Table(name="test/odd", schema=schema, description="Odd.")
    create_table(settings.lake(), odd)
    append_rows(settings.lake(), odd, [{'by "x"; --': "a", "n": 3}], {})
    topology = Topology(
        [stream("test/odd", writes=odd)],
        plots=[Plot(title="Odd", table=odd, x='by "x"; --', y="n")],
    )

    [chart] = charts_of_results(settings, topology)

    assert isinstance(chart, Ranking)
    assert [rank.value for rank in chart.ranks] == ["3"]


def test_this_deployment_plots_what_its_domains_publish() -> None:
    plots = {plot.title: plot for plot in DEPLOYMENT.plots}

    assert "taxi/hourly_winners" in {plot.table.name for plot in plots.values()}
    places = {plot.x for plot in plots.values() if plot.table.name.startswith("taxi/zone_")}
    assert {"zone", "borough"} <= places, "zone activity, as bars"
    marks = {
        mark.name for plot in plots.values() if plot.unit in ("°F", "°C") for mark in plot.marks
    }
    assert {"gap", "smoke alert"} <= marks, "temperatures with their gaps and alerts"
