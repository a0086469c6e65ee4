"""Published results as charts: the plots that a deployment declares, drawn from its tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from rivermark.html.axis import bucket_of
from rivermark.html.chart import COLOURS, Chart, Marked, Ranking, lines, ranking, stacked_bars
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import query, quoted
from rivermark.model.plot import Marks, Plot
from rivermark.model.topology import Topology
from rivermark.settings import Settings

MOST_BUCKETS: Final = 120
MOST_NAMES: Final = 12
MOST_MARKS: Final = 500
FUNCTIONS: Final = {"sum": "sum", "mean": "avg", "min": "min", "max": "max"}

ENDS: Final = """
SELECT min(epoch({x})) AS first, max(epoch({x})) AS last FROM rows
WHERE {x} IS NOT NULL AND {y} IS NOT NULL
"""
OVER_TIME: Final = """
SELECT {by} AS name, floor(epoch({x}) / $seconds)::BIGINT AS bucket,
       {function}({y})::DOUBLE AS value
FROM rows WHERE {x} IS NOT NULL AND {y} IS NOT NULL GROUP BY ALL
ORDER BY name
"""
BY_NAME: Final = """
SELECT {x}::VARCHAR AS name, {function}({y})::DOUBLE AS value
FROM rows WHERE {x} IS NOT NULL AND {y} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {most}
"""
MARKS: Final = """
SELECT epoch({start}) AS start, epoch({end}) AS end FROM rows
WHERE {start} IS NOT NULL AND {end} IS NOT NULL ORDER BY 1 DESC LIMIT {most}
"""


def charts_of_results(settings: Settings, topology: Topology) -> list[Chart | Ranking]:
    """A chart of each declared plot whose table has rows, in the order of declaration."""
    charts = (_chart(settings, plot) for plot in topology.plots)
    return [chart for chart in charts if chart is not None]


def _chart(settings: Settings, plot: Plot) -> Chart | Ranking | None:
    lake = settings.lake()
    if not lake.exists(plot.table):
        return None
    rows = {"rows": open_table(lake, plot.table)}
    names = {
        "x": quoted(plot.x),
        "y": quoted(plot.y or plot.x),
        "by": f"{quoted(plot.by)}::VARCHAR" if plot.by else "''",
        "function": FUNCTIONS[plot.combine] if plot.y else "count",
        "most": MOST_NAMES,
    }
    if not plot.over_time:
        values = {row["name"]: row["value"] for row in query(BY_NAME.format(**names), rows)}
        note = _note(plot, f"by {plot.x}, the {len(values)} largest")
        return ranking(plot.title, values, note=note, unit="number") if values else None
    [ends] = query(ENDS.format(**names), rows)
    if ends["first"] is None:
        return None
    span = max(1.0, ends["last"] - ends["first"])
    step = bucket_of(timedelta(seconds=span), MOST_BUCKETS)
    by_name: dict[str, dict[datetime, float]] = {}
    for row in query(OVER_TIME.format(**names), rows, {"seconds": step.total_seconds()}):
        at = datetime.fromtimestamp(row["bucket"] * step.total_seconds(), UTC)
        by_name.setdefault(row["name"] or plot.title, {})[at] = row["value"]
    if plot.kind == "bars":
        starts = sorted(next(iter(by_name.values())))
        # A bar is an hour wide where there is a row an hour.
        width = min((after - before for before, after in pairwise(starts)), default=step)
        return stacked_bars(
            plot.title, by_name, width, note=_note(plot, f"by {plot.x} (UTC)"), unit="number"
        )
    more = f", {COLOURS} of {len(by_name)}" if len(by_name) > COLOURS else ""
    marks = {each.name: _marked(settings, each) for each in plot.marks}
    return lines(
        plot.title,
        by_name,
        note=_note(plot, f"by {plot.x} (UTC){more}"),
        unit="number",
        from_zero=False,
        broken=True,
        marks=marks,
    )


def _note(plot: Plot, text: str) -> str:
    return ", ".join(part for part in (plot.unit, text) if part)


def _marked(settings: Settings, marks: Marks) -> list[Marked]:
    """The newest marks."""
    lake = settings.lake()
    if not lake.exists(marks.table):
        return []
    names: dict[str, Any] = {
        "start": quoted(marks.start),
        "end": quoted(marks.end or marks.start),
        "most": MOST_MARKS,
    }
    return [
        Marked(*(datetime.fromtimestamp(row[name], UTC) for name in ("start", "end")))
        for row in query(MARKS.format(**names), {"rows": open_table(lake, marks.table)})
    ]
