"""Charts as PNG files: what flowed, how much of it was late, and who won each hour.

Pure functions from rows to a file. They draw on canvases of their own, so they need no display,
change no global style of matplotlib, and may run in any thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rivermark.lake.filesystem import replacing
from rivermark.model.rule import in_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_INCHES: Final = 9.0
DOTS_PER_INCH: Final = 120
MOST_STREAMS: Final = 12
MOST_NAMES: Final = 60
ONE_HOUR: Final = timedelta(hours=1)

# Okabe and Ito's colours, which also those tell apart who do not see red and green.
BLUE: Final = "#0072B2"
ORANGE: Final = "#D55E00"
GREEN: Final = "#009E73"
FAINT: Final = "#E3E7EA"


class HourOfRows(NamedTuple):
    """Rows of a stream whose event time lies in the hour that begins at `hour`."""

    stream: str
    hour: datetime
    rows: int


class LateShare(NamedTuple):
    """Rows of a stream that were on time and late, and the share of late ones that is allowed."""

    stream: str
    on_time: int
    late: int
    limit: float

    @property
    def share(self) -> float:
        """Late rows among all valid ones; 0 where there were none."""
        return self.late / max(1, self.late + self.on_time)


class Winner(NamedTuple):
    """The driver with the most tips (US dollars) in the hour that ends at `hour_end`."""

    hour_end: datetime
    driver: int | str
    tips: Decimal


def draw_rows_per_hour(hours: Iterable[HourOfRows], path: Path) -> Path:
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


def draw_late_share(shares: Iterable[LateShare], path: Path) -> Path:
    """A bar for each stream: late rows as a share of the valid ones, and the limit of its check."""
    ordered = sorted(shares, key=lambda s: s.share)
    figure = figure_of(
        "Share of late rows (black mark: the limit; orange: above it)",
        height=1.2 + 0.42 * max(1, len(ordered)),
    )
    for axes in panels_of(figure, min(1, len(ordered))):
        places = range(len(ordered))
        percents = [100 * s.share for s in ordered]
        limits = [100 * s.limit for s in ordered]
        colours = [ORANGE if s.share > s.limit else BLUE for s in ordered]
        axes.barh(places, percents, height=0.6, color=colours)
        axes.scatter(limits, places, marker="|", s=260, linewidth=2, color="black", zorder=3)
        for place, s in zip(places, ordered, strict=True):
            axes.text(
                1.01,
                place,
                f"{100 * s.share:.2f} %  ({s.late:,} of {s.late + s.on_time:,})",
                transform=axes.get_yaxis_transform(),
                va="center",
                fontsize=9,
            )
        axes.set_yticks(list(places), [s.stream for s in ordered])
        axes.set_xlim(0, 1.06 * max(*percents, *limits, 0.1))
        axes.set_xlabel("late rows (% of valid rows)")
        axes.grid(visible=True, axis="x", color=FAINT)
    return write_png(figure, path)


def draw_hourly_winners(winners: Iterable[Winner], path: Path) -> Path:
    """A bar for each hour: the most tips that a driver made in it, with the driver's number."""
    ordered = sorted(winners, key=lambda w: w.hour_end)
    figure = figure_of("The driver with the most tips in each hour", height=4.2)
    for axes in panels_of(figure, min(1, len(ordered))):
        first = ordered[0].hour_end
        places = [(w.hour_end - first) / ONE_HOUR for w in ordered]
        tips = [float(w.tips) for w in ordered]
        bars = axes.bar(places, tips, width=0.7, color=GREEN)
        crowded = places[-1] > 8
        names = [f"{w.driver}" if crowded else f"driver {w.driver}\n{w.tips:,.2f}" for w in ordered]
        if len(ordered) <= MOST_NAMES:
            axes.bar_label(bars, names, fontsize=8, rotation=90 if crowded else 0, padding=2)
        step = 1 + int(places[-1]) // 12
        ticks = range(0, int(places[-1]) + 1, step)
        axes.set_xticks(
            list(ticks), [f"{(first + n * ONE_HOUR).astimezone(UTC):%-d %b\n%H:%M}" for n in ticks]
        )
        axes.set_ylim(0, max(*tips, 1.0) * (1.4 if crowded else 1.2))
        axes.set_xlabel("end of the hour, event time (UTC)")
        axes.set_ylabel("tips of the best driver (US$)")
        axes.grid(visible=True, axis="y", color=FAINT)
    return write_png(figure, path)


def _draw_hours(panel: Axes, stream: str, rows: Sequence[HourOfRows]) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    counted: Counter[datetime] = Counter()
    for row in rows:
        counted[row.hour.astimezone(UTC)] += row.rows
    first, last = min(counted), max(counted)
    hours = [first + ONE_HOUR * n for n in range((last - first) // ONE_HOUR + 1)]
    edges = date2num([*hours, last + ONE_HOUR])  # type: ignore[no-untyped-call]
    panel.stairs([counted[hour] for hour in hours], edges, fill=True, color=BLUE)
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
