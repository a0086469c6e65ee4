"""Charts as SVG files: what streams brought in, published results, and how late rows are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

from rivermark.html.axis import bucket_of, seconds_text
from rivermark.html.chart import HEIGHT, WIDTH, Chart, Ranking, share_columns
from rivermark.html.page import SHARED, pages_of
from rivermark.html.time_chart import stacked_bars
from rivermark.lake.filesystem import write_file
from rivermark.lake.quoting import quoted
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import query
from rivermark.model.rule import in_rows
from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.topology import Topology
from rivermark.monitor.lateness_proposal import Proposal
from rivermark.monitor.published_results import charts_of_results
from rivermark.settings import Settings

MOST_STREAMS: Final = 12
MOST_BARS: Final = 240
ONE_HOUR: Final = timedelta(hours=1)


class HourCount(NamedTuple):
    """Rows of a stream whose event time lies in the hour that starts at `hour` (UTC)."""

    stream: str
    hour: datetime
    rows: int


def draw_inflow(settings: Settings, streams: Sequence[AnyStream], path: Path) -> Path:
    """Draw the admitted rows of each ingest by hour of event time (UTC)."""
    hours: list[HourCount] = []
    for stream in streams:
        if isinstance(stream, Ingest) and settings.lake().exists(stream.admitted):
            hours += rows_per_hour(settings, stream)
    return draw_rows_per_hour(hours, path)


def draw_results(settings: Settings, topology: Topology, path: Path) -> Path:
    """Draw the published results that the deployment declares as plots."""
    return _write("Published results", charts_of_results(settings, topology), path)


def rows_per_hour(settings: Settings, ingest: Ingest) -> list[HourCount]:
    """Number of admitted rows in each hour."""
    time = quoted(ingest.contract.event_time)
    counts = query(
        f"SELECT date_trunc('hour', {time}) AS hour, count(*) AS n FROM admitted GROUP BY 1",  # noqa: S608
        {"admitted": open_table(settings.lake(), ingest.admitted)},
    )
    return [HourCount(ingest.name, row["hour"].astimezone(UTC), row["n"]) for row in counts]


def draw_rows_per_hour(hours: Iterable[HourCount], path: Path) -> Path:
    """One chart for each stream: rows by hour of event time (UTC), missing hours as gaps.

    Each has scales of its own, since streams differ by years and by thousands of rows; the bars of
    a long one are of many hours. The largest streams are shown where there are more than fit.
    """
    by_stream: dict[str, Counter[datetime]] = {}
    for row in hours:
        by_stream.setdefault(row.stream, Counter())[row.hour.astimezone(UTC)] += row.rows
    largest = sorted(by_stream, key=lambda s: -by_stream[s].total())[:MOST_STREAMS]
    title = "Rows by event time (UTC)"
    if len(by_stream) > len(largest):
        title += f" (the {len(largest)} largest of {len(by_stream)} streams)"
    return _write(title, [_hours(name, by_stream[name]) for name in sorted(largest)], path)


def draw_lateness(proposals: Sequence[Proposal], path: Path) -> Path:
    """A chart an ingest: share of late rows by lateness, the one of now, and the proposed one."""
    charts = [lateness_chart(p) for p in proposals if p.curve]
    return _write("Late rows by allowed lateness", charts, path)


def lateness_chart(proposal: Proposal) -> Chart:
    """The share of rows that would be late by allowed lateness."""
    steps = [point.lateness for point in proposal.curve]
    marked = {steps.index(proposal.lateness): "now"}
    if proposal.proposed is not None:
        marked[steps.index(proposal.proposed)] = "best"
    return share_columns(
        f"{proposal.stream}: late rows by allowed lateness",
        [(seconds_text(p.lateness.total_seconds()), p.share) for p in proposal.curve],
        marked,
        {"now": "lateness of now", "best": "proposal"},
        note=proposal.sentence,
    )


def _hours(stream: str, rows: Counter[datetime]) -> Chart:
    first, last = min(rows), max(rows)
    step = max(ONE_HOUR, bucket_of(last - first + ONE_HOUR, MOST_BARS))
    bars: Counter[datetime] = Counter()
    for hour, count in rows.items():
        bars[first + (hour - first) // step * step] += count
    days = f"{first:%-d %b %Y}" + (f" to {last:%-d %b %Y}" if last.date() > first.date() else "")
    note = f"{in_rows(rows.total())}, {days}, a bar is {seconds_text(step.total_seconds())}"
    return stacked_bars(stream, {stream: bars}, step, note=note)


def _write(title: str, charts: Sequence[Chart | Ranking], path: Path) -> Path:
    """Write the picture in one step, so that a page that shows it never reads half of it."""
    write_file(str(path), picture(title, charts).encode(), durable=False)
    return path


LAYOUT: Final = {
    "width": 1080,
    "left": 90,  # the texts of values stand before it
    "span": 960,
    "head": 64,
    "above": 52,  # a title and a note
    "below": 76,  # times and a legend
    "chart": 170,
    "rank": 22,
    "x_scale": 960 / WIDTH,
    "y_scale": 170 / HEIGHT,
}
"""Sizes in pixels."""


def picture(title: str, charts: Sequence[Chart | Ranking]) -> str:
    """The charts below each other as one SVG file; without any it says that there is nothing."""
    heights = [
        LAYOUT["above"]
        + LAYOUT["below"]
        + (LAYOUT["rank"] * len(c.ranks) if isinstance(c, Ranking) else LAYOUT["chart"])
        for c in charts
    ]
    tops = list(accumulate(heights, initial=LAYOUT["head"]))
    template = pages_of(SHARED).get_template("picture.svg")
    return template.render(
        LAYOUT, title=title, panels=list(zip(tops, charts, strict=False)), height=tops[-1] + 40
    )
