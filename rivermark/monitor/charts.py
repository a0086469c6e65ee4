"""Charts as PNG files: what streams brought in by hour, and how late their rows are.

They draw on canvases of their own, so they need no display, change no global style of matplotlib,
and may run in any thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rivermark.lake.filesystem import replacing
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import query, quoted
from rivermark.model.ingest import MILLI
from rivermark.model.rule import in_rows
from rivermark.model.stream import AnyStream, Ingest
from rivermark.monitor.late_statistics import span
from rivermark.monitor.lateness_proposal import LATE_AT_MOST, Proposal
from rivermark.settings import Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_INCHES: Final = 9.0
DOTS_PER_INCH: Final = 120
MOST_STREAMS: Final = 12
ONE_HOUR: Final = timedelta(hours=1)

# The colours of Okabe and Ito, distinguishable without red and green too.
BLUE: Final = "#0072B2"
ORANGE: Final = "#D55E00"
GREEN: Final = "#009E73"
FAINT: Final = "#E3E7EA"


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


def rows_per_hour(settings: Settings, ingest: Ingest) -> list[HourCount]:
    """How many admitted rows lie in each hour."""
    time = quoted(ingest.contract.event_time)
    counts = query(
        f"SELECT date_trunc('hour', {time}) AS hour, count(*) AS n FROM admitted GROUP BY 1",  # noqa: S608
        {"admitted": open_table(settings.lake(), ingest.admitted)},
    )
    return [HourCount(ingest.name, row["hour"].astimezone(UTC), row["n"]) for row in counts]


def draw_rows_per_hour(hours: Iterable[HourCount], path: Path) -> Path:
    """One panel for each stream: rows for each hour of event time (UTC), missing hours as gaps.

    Each panel has scales of its own, since streams differ by years and by thousands of rows. The
    largest streams are shown where there are more than fit.
    """
    by_stream = {
        stream: list(rows) for stream, rows in groupby(sorted(hours), key=lambda r: r.stream)
    }
    largest = sorted(by_stream, key=lambda s: -sum(r.rows for r in by_stream[s]))[:MOST_STREAMS]
    title = "Rows for each hour of event time"
    if len(by_stream) > len(largest):
        title += f" (the {len(largest)} largest of {len(by_stream)} streams)"
    figure = figure_of(title, height=0.7 + 1.2 * max(1, len(largest)))
    for panel, stream in zip(panels_of(figure, len(largest)), sorted(largest), strict=True):
        _draw_hours(panel, stream, by_stream[stream])
    figure.supxlabel("event time (UTC)", fontsize=10)
    figure.supylabel("rows per hour", fontsize=10)
    return write_png(figure, path)


def draw_lateness(proposals: Sequence[Proposal], path: Path) -> Path:
    """A panel an ingest: share of late rows by lateness, the one of now, and the proposed one."""
    shown = [p for p in proposals if p.curve]
    title = "Late rows by allowed lateness (orange: now, green: proposed, dotted: the aim)"
    figure = figure_of(title, height=0.8 + 1.9 * max(1, len(shown)))
    for axes, proposal in zip(panels_of(figure, len(shown)), shown, strict=True):
        places = range(len(proposal.curve))
        floor = 1e-6
        axes.plot(places, [max(c.share, floor) for c in proposal.curve], marker="o", color=BLUE)
        for place, point in zip(places, proposal.curve, strict=True):
            if point.lateness == proposal.lateness:
                axes.axvline(place, color=ORANGE, linewidth=2)
            if point.lateness == proposal.proposed:
                axes.axvline(place, color=GREEN, linewidth=2, linestyle="--")
        axes.axhline(LATE_AT_MOST, color="black", linewidth=1, linestyle=":")
        axes.set_yscale("log")
        axes.set_ylim(floor / 2, 1.5)
        axes.set_xticks(
            list(places), [span(c.lateness // MILLI) for c in proposal.curve], rotation=35
        )
        axes.grid(visible=True, axis="y", color=FAINT)
        axes.set_title(f"{proposal.stream}: {proposal.sentence}", loc="left", fontsize=9)
    return write_png(figure, path)


def _draw_hours(panel: Axes, stream: str, rows: Sequence[HourCount]) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
    from matplotlib.patches import StepPatch
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    counted: Counter[datetime] = Counter()
    for row in rows:
        counted[row.hour.astimezone(UTC)] += row.rows
    first, last = min(counted), max(counted)
    hours = [first + ONE_HOUR * n for n in range((last - first) // ONE_HOUR + 1)]
    edges = date2num([*hours, last + ONE_HOUR])  # type: ignore[no-untyped-call]
    # The limits are set below: `stairs` would look for them along each edge, a third of the work.
    values = [counted[hour] for hour in hours]
    panel.add_artist(StepPatch(values, edges, color=BLUE, linewidth=0))
    locator = AutoDateLocator(minticks=3, maxticks=8)  # type: ignore[no-untyped-call]
    dates = ConciseDateFormatter(locator, show_offset=False)  # type: ignore[no-untyped-call]
    panel.xaxis.set_major_locator(locator)
    panel.xaxis.set_major_formatter(dates)
    panel.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    panel.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    panel.set_xlim(edges[0], edges[-1])
    panel.set_ylim(0, max(1, *counted.values()) * 1.1)
    panel.grid(visible=True, axis="y", color=FAINT)
    total = sum(counted.values())
    days = f"{first:%-d %b %Y}" + (f" to {last:%-d %b %Y}" if last.date() > first.date() else "")
    panel.set_title(f"{stream}: {in_rows(total)}, {days}", loc="left", fontsize=10)


def figure_of(title: str, *, height: float) -> Figure:
    """An empty figure with a title; the height in inches."""
    # Drawing takes half a second to import; declaring suites and checks must not pay for it.
    from matplotlib.figure import Figure

    figure = Figure(
        figsize=(WIDTH_INCHES, height), dpi=DOTS_PER_INCH, facecolor="white", layout="constrained"
    )
    figure.suptitle(title, fontsize=12)
    return figure


def panels_of(figure: Figure, count: int) -> list[Axes]:
    """So many panels below each other; without any, the figure says that there is nothing yet."""
    if not count:
        figure.text(0.5, 0.5, "nothing to show yet", ha="center", va="center", fontsize=11)
        return []
    panels: list[Axes] = list(figure.subplots(count, 1, squeeze=False)[:, 0])
    for panel in panels:
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=9)
    return panels


def write_png(figure: Figure, path: Path) -> Path:
    """Write the picture in one step, so that a page that shows it never reads half of it."""
    with replacing(path) as draft:
        figure.savefig(draft, format="png", metadata={"Software": None})
    return path
