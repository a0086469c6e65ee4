"""A picture of the CPU seconds of each engine by the number of events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import matplotlib as mpl

from bench.peers.cost import spread
from bench.peers.engines import ENGINES
from bench.peers.measured import Run
from bench.peers.workloads import WORKLOADS

mpl.use("Agg")
# The same runs give the same file.
mpl.rcParams["svg.hashsalt"] = "rivermark"

COLOURS: Final = (
    "#0b6e99",
    "#65b5d6",
    "#094f6e",
    "#d9480f",
    "#f59f00",
    "#868e96",
    "#a61e4d",
    "#495057",
    "#e599f7",
    "#7c5cbf",
    "#2b8a3e",
    "#5c940d",
)


def draw(runs: Sequence[Run], out: Path) -> None:
    """One small chart a workload: events across, CPU seconds up, both logarithmic."""
    from matplotlib import pyplot

    shown = [name for name in WORKLOADS if any(run.workload == name for run in runs)]
    figure, axes = pyplot.subplots(
        (len(shown) + 2) // 3, 3, figsize=(11, 3.2 * ((len(shown) + 2) // 3)), squeeze=False
    )
    for axis, workload in zip(axes.flat, shown, strict=False):
        for engine, colour in zip(ENGINES, COLOURS, strict=True):
            points = []
            for size in sorted({run.size for run in runs}):
                of = [run for run in runs if run.cell == (workload, engine, size)]
                if cpu := spread(of, lambda run: run.cpu):
                    points.append((of[0].events, cpu.median))
            if points:
                axis.plot(*zip(*points, strict=True), marker="o", color=colour, label=engine)
        axis.set(xscale="log", yscale="log", title=WORKLOADS[workload].title)
        axis.set(xlabel="events", ylabel="CPU seconds")
        axis.grid(visible=True, alpha=0.3)
    for axis in axes.flat[len(shown) :]:
        axis.set_axis_off()
    handles = {line.get_label(): line for axis in axes.flat for line in axis.get_lines()}
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncol=len(handles))
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, metadata={"Date": None})
    pyplot.close(figure)
