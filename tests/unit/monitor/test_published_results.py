"""Declared plots are drawn from the tables' rows, in spans that people count in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
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


@pytest.mark.parametrize(
    ("values", "moments"),
    [
        ((922.8877522200562, 922.8877522200563), (NOON, NOON + HOUR)),
        ((5e-324, 0.0), (NOON, NOON + HOUR)),
        ((1e308, -1e308), (NOON, NOON + HOUR)),
        ((1e308, 1e308), (NOON, NOON)),
        ((1.0, 2.0), (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC))),
        ((1.0, 2.0), (NOON, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))),
    ],
)
def test_m040_no_odd_value_takes_the_page_down(
    settings: Settings, values: tuple[float, float], moments: tuple[datetime, datetime]
) -> None:
    odd = Table(name="test/odd", schema="at timestamp, name string, value double", description="O.")
    create_table(settings.lake(), odd)
    rows = [
        {"at": at, "name": f"n{n}", "value": value}
        for n, (at, value) in enumerate(zip(moments, values, strict=True))
    ]
    append_rows(settings.lake(), odd, rows, {})
    plots = [
        Plot(title="Line", table=odd, x="at", y="value", kind="line", combine="mean", by="name"),
        Plot(title="Mean", table=odd, x="at", y="value", kind="line", combine="mean"),
        Plot(title="Bars", table=odd, x="at", y="value"),
        Plot(title="Ranks", table=odd, x="name", y="value"),
    ]

    charts = charts_of_results(settings, Topology([stream("test/odd", writes=odd)], plots=plots))

    # A sum beyond what a number can be is left out, as no number is.
    assert len(charts) >= 2
    assert not [chart.note for chart in charts if "cannot be drawn" in chart.note]


def test_m040_a_chart_that_cannot_be_drawn_is_a_sentence(settings: Settings) -> None:
    write(settings, range(1, 3))
    plots = [Plot(title="Tips", table=TIPS, x="at"), Plot(title="More", table=TIPS, x="zone")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rivermark.monitor.published_results.stacked_bars", lambda *_, **__: 1 / 0)
        broken, drawn = charts_of_results(settings, Topology(TOPOLOGY, plots=plots))

    assert broken.note == "cannot be drawn (ZeroDivisionError: division by zero)"
    assert isinstance(drawn, Ranking)
    assert drawn.ranks
