"""The chart of `bench.growth`: what was measured at the end of each simulated day."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from rivermark.monitor.charts.png import BLUE, FAINT, GREEN, ORANGE

Lines = dict[str, str]
PANELS: Final[tuple[tuple[str, Lines], ...]] = (
    (
        "CPU per batch (ms)",
        {"streams": "stream_cpu_ms_per_batch", "upkeep": "upkeep_cpu_ms_per_batch"},
    ),
    ("Memory after a collection (MB)", {"all processes": "rss_mb", "JVM's heap": "heap_mb"}),
    ("State (rows)", {"rows": "state_rows"}),
    ("Table files", {"on disk": "data_files", "of the newest version": "live_files"}),
    (
        "Files of logs and checkpoints",
        {"table logs": "log_files", "checkpoints": "checkpoint_files"},
    ),
    ("Dagster's event log (reports)", {"reports": "event_log_rows"}),
)
"""Each panel's title, and its lines: label and name of the figure."""


def slope(values: Sequence[float]) -> float:
    """The straight line through values of successive days: its rise a day in % of their mean."""
    if len(values) < 2 or not any(values):
        return 0.0
    rise, _ = statistics.linear_regression(range(len(values)), values)
    return round(100 * rise / statistics.fmean(values), 2)


def draw_growth(by_day: Mapping[str, Sequence[float]], path: Path) -> None:
    """Six small charts, each beginning at zero, so that a rise is seen for what it is."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 3)
    for axis, (title, lines) in zip(axes.flat, PANELS, strict=True):
        for colour, (label, name) in zip((BLUE, ORANGE, GREEN), lines.items(), strict=False):
            values = by_day[name]
            half = values[len(values) // 2 :]
            legend = f"{label} ({slope(half):+.1f} % a day)"
            axis.plot(range(1, len(values) + 1), values, color=colour, label=legend)
        axis.set_title(title, fontsize=10, loc="left")
        top = max(max(by_day[name]) for name in lines.values())
        axis.set_ylim(0, 1.4 * top or 1)
        axis.grid(axis="y", color=FAINT)
        axis.legend(fontsize=8, frameon=False, loc="upper left")
        axis.set_xlabel("simulated day", fontsize=8)
    figure.savefig(path, dpi=120)
