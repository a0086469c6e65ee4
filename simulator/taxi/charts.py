"""The chart of the taxi domain: who earned the most tips in each hour."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final, NamedTuple

from rivermark.monitor.charts import FAINT, GREEN, ONE_HOUR, figure_of, panels_of, write_png

MOST_NAMES: Final = 60


class Winner(NamedTuple):
    """The driver with the most tips (US dollars) in the hour that ends at `hour_end`."""

    hour_end: datetime
    driver: int | str
    tips: Decimal


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
