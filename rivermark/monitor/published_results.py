"""Published results as charts: the plots that a deployment declares, drawn from its tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from rivermark.html.axis import bucket_of, instant, within
from rivermark.html.chart import Chart, Ranking, ranking
from rivermark.html.time_chart import COLOURS, Marked, lines, stacked_bars
from rivermark.lake.quoting import quoted
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import query
from rivermark.model.plot import Marks, Plot
from rivermark.model.topology import Topology
from rivermark.settings import Settings

if TYPE_CHECKING:
    # Arrow's datasets import pandas, which takes a second: not before the first query.
    from pyarrow.dataset import Dataset

MOST_BUCKETS: Final = 120
MOST_NAMES: Final = 12
MOST_MARKS: Final = 500
FUNCTIONS: Final = {"sum": "sum", "mean": "avg", "min": "min", "max": "max"}

ENDS: Final = """
SELECT min(epoch({x})) AS first, max(epoch({x})) AS last FROM rows
WHERE {x} IS NOT NULL AND {usable}
"""
OVER_TIME: Final = """
SELECT {by} AS name, floor(epoch({x}) / $seconds)::BIGINT AS bucket,
       {function}({y})::DOUBLE AS value
FROM rows WHERE {x} IS NOT NULL AND {usable} GROUP BY ALL
HAVING isfinite(value) ORDER BY name
"""
BY_NAME: Final = """
SELECT {x}::VARCHAR AS name, {function}({y})::DOUBLE AS value
FROM rows WHERE {x} IS NOT NULL AND {usable} GROUP BY 1
HAVING isfinite(value) ORDER BY 2 DESC, 1 LIMIT {most}
"""
MARKS: Final = """
SELECT epoch({start}) AS start, epoch({end}) AS end FROM rows
WHERE {start} IS NOT NULL AND {end} IS NOT NULL ORDER BY 1 DESC LIMIT {most}
"""


def charts_of_results(settings: Settings, topology: Topology) -> list[Chart | Ranking]:
    """A chart of each declared plot whose table has rows, in the order of declaration."""
    charts = (_drawn(settings, plot) for plot in topology.plots)
    return [chart for chart in charts if chart is not None]


def _drawn(settings: Settings, plot: Plot) -> Chart | Ranking | None:
    """The chart, or a sentence in its place: one that cannot be drawn takes no page down."""
    try:
        return _chart(settings, plot)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return Ranking(title=plot.title, note=f"cannot be drawn ({reason})", ranks=())


def _chart(settings: Settings, plot: Plot) -> Chart | Ranking | None:
    lake = settings.lake()
    if not lake.exists(plot.table):
        return None
    rows = {"rows": open_table(lake, plot.table)}
    names: dict[str, object] = {
        "x": quoted(plot.x),
        "y": quoted(plot.y or plot.x),
        "by": f"{quoted(plot.by)}::VARCHAR" if plot.by else "''",
        "function": FUNCTIONS[plot.combine] if plot.y else "count",
        "most": MOST_NAMES,
        # No number, and infinity, have no place on an axis.
        "usable": f"isfinite({quoted(plot.y)}::DOUBLE)" if plot.y else "TRUE",
    }
    if not plot.over_time:
        values = {row["name"]: within(row["value"]) for row in query(BY_NAME.format(**names), rows)}
        note = _note(plot, f"by {plot.x}, the {len(values)} largest")
        return ranking(plot.title, values, note=note, unit="number") if values else None
    step, by_name = _over_time(plot, rows, names)
    if not by_name:
        return None
    if plot.kind == "bars":
        # A bar is an hour wide where there is a row an hour.
        starts = sorted({at for series in by_name.values() for at in series})
        width = min((after - before for before, after in pairwise(starts)), default=step)
        note = _note(plot, f"by {plot.x} (UTC)")
        return stacked_bars(plot.title, by_name, width, note=note)
    more = f", {COLOURS} of {len(by_name)}" if len(by_name) > COLOURS else ""
    return lines(
        plot.title,
        by_name,
        note=_note(plot, f"by {plot.x} (UTC){more}"),
        unit="number",
        from_zero=False,
        broken=True,
        marks={each.name: _marked(settings, each) for each in plot.marks},
    )


def _over_time(
    plot: Plot, rows: Mapping[str, Dataset], names: Mapping[str, object]
) -> tuple[timedelta, dict[str, dict[datetime, float]]]:
    """The values of each line by the start of their span of time, and how long that is."""
    [ends] = query(ENDS.format(**names), rows)
    span = timedelta(seconds=max(1.0, (ends["last"] or 0.0) - (ends["first"] or 0.0)))
    step = bucket_of(span, MOST_BUCKETS)
    seconds = step.total_seconds()
    by_name: dict[str, dict[datetime, float]] = {}
    for row in query(OVER_TIME.format(**names), rows, {"seconds": seconds}):
        at = instant(row["bucket"] * seconds)
        by_name.setdefault(row["name"] or plot.title, {})[at] = within(row["value"])
    return step, by_name


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
        Marked(*(instant(row[name]) for name in ("start", "end")))
        for row in query(MARKS.format(**names), {"rows": open_table(lake, marks.table)})
    ]
