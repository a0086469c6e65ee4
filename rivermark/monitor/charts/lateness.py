"""The chart behind a lateness proposal: how many rows each allowed lateness would make late."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rivermark.model.ingest import MILLI
from rivermark.monitor.charts.png import BLUE, FAINT, GREEN, ORANGE, figure_of, panels_of, write_png
from rivermark.monitor.late_statistics import span
from rivermark.monitor.lateness_proposal import LATE_AT_MOST, Proposal


def draw_lateness(proposals: Sequence[Proposal], path: Path) -> Path:
    """A panel an ingest: share of late rows by lateness, the one of now, and the proposed one."""
    shown = [p for p in proposals if p.curve]
    title = "Late rows by allowed lateness (orange: now, green: proposed, dotted: the aim)"
    figure = figure_of(title, height=0.8 + 1.9 * max(1, len(shown)))
    for axes, proposal in zip(panels_of(figure, len(shown)), shown, strict=True):
        places = range(len(proposal.curve))
        floor = 1e-6
        axes.plot(places, [max(c.share, floor) for c in proposal.curve], marker="o", color=BLUE)
        for place, found in zip(places, proposal.curve, strict=True):
            if found.lateness == proposal.lateness:
                axes.axvline(place, color=ORANGE, linewidth=2)
            if found.lateness == proposal.proposed:
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
