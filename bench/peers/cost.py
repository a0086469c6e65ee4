"""What the runs say: medians, their spread, and the fixed and the marginal part of a cost."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.peers.measured import Run


@dataclass(frozen=True)
class Spread:
    """The median of repeats and their smallest and largest."""

    median: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Line:
    """CPU seconds as a fixed part and a part per million events (least squares over medians)."""

    fixed: float
    per_million: float
    sizes: int


def spread(runs: Iterable[Run], figure: Callable[[Run], float]) -> Spread | None:
    """Median and spread of a figure over the runs whose output was right."""
    values = [figure(run) for run in runs if not run.wrong]
    if not values:
        return None
    return Spread(statistics.median(values), min(values), max(values), len(values))


def line(runs: Iterable[Run]) -> Line | None:
    """Fixed and marginal cost, from three sizes at least."""
    sizes: dict[int, list[Run]] = {}
    for run in runs:
        if not run.wrong:
            sizes.setdefault(run.events, []).append(run)
    if len(sizes) < 3:
        return None
    medians = {events: statistics.median(run.cpu for run in of) for events, of in sizes.items()}
    slope, fixed = statistics.linear_regression(list(medians), list(medians.values()))
    return Line(fixed, slope * 1e6, len(sizes))
