"""Charts over time: stacked bars, and lines with gaps and marks. Times are UTC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from statistics import median
from typing import Final, NamedTuple

from rivermark.html.axis import Axis, Unit, instant, text_of, time_axis, value_axis
from rivermark.html.chart import HEIGHT, WIDTH, Chart, Shape, grid

COLOURS: Final = 6
"""Series that can be told apart; further ones are summed up or left out."""
OTHERS: Final = "others"
LONGEST_STEP: Final = 1.5
"""A line is broken where two points are so many of its usual steps apart."""

Series = Mapping[datetime, float]
"""Values by the start of their span of time (UTC)."""


class Marked(NamedTuple):
    """A span of time (UTC) that a chart marks, or an instant where both ends are equal."""

    start: datetime
    end: datetime


def stacked_bars(
    title: str, by_name: Mapping[str, Series], step: timedelta, *, note: str = ""
) -> Chart:
    """A bar for each span of time, made of the values of each name; the smallest are summed up."""
    shown = _largest(by_name)
    starts = sorted({at for series in shown.values() for at in series})
    stacks = {at: [series.get(at, 0.0) for series in shown.values()] for at in starts}
    totals = {at: sum(stack) for at, stack in stacks.items()}
    ends = [end for stack in stacks.values() for end in accumulate(stack)]
    y = value_axis(min(0.0, *ends), max(0.0, *ends), "number")
    x = time_axis(starts[0], instant(starts[-1].timestamp() + step.total_seconds()))
    shapes = []
    for at, total in totals.items():
        base = 0.0
        for n, (name, value) in enumerate(zip(shown, stacks[at], strict=True)):
            if value:
                bar = _bar(x, y, at, step, *sorted((base, base + value)))
                of = f", {name}: {text_of(value, 'number')}" if len(shown) > 1 else ""
                shapes.append(
                    Shape(f"fill s{n}", bar, f"{_time(at)} UTC: {text_of(total, 'number')}{of}")
                )
                base += value
    return Chart(
        title=title,
        note=note,
        label=f"{title}. {_said('', totals, 'number')}",
        shapes=[*grid(y.ticks), *shapes],
        x_ticks=x.ticks,
        y_ticks=y.ticks,
        legend=_legend(shown),
    )


def lines(
    title: str,
    by_name: Mapping[str, Series],
    *,
    note: str = "",
    unit: Unit,
    from_zero: bool = True,
    broken: bool = False,
    marks: Mapping[str, Iterable[Marked]] | None = None,
) -> Chart:
    """A line for each name, those with the most points; `broken` where points are missing."""
    most = sorted(by_name, key=lambda name: -len(by_name[name]))[:COLOURS]
    shown = {name: by_name[name] for name in by_name if name in most}
    values = [value for series in shown.values() for value in series.values()]
    times = [at for series in shown.values() for at in series]
    y = value_axis(0 if from_zero else min(values), max(values), unit)
    # Room beside the first point and the last one, which may have no neighbours.
    ends = min(times).timestamp(), max(times).timestamp()
    beside = max((ends[1] - ends[0]) / 100, 1.0)
    x = time_axis(*(instant(at) for at in (ends[0] - beside, ends[1] + beside)))
    spans = {
        name: Shape(f"mark m{n}", path)
        for n, (name, marked) in enumerate((marks or {}).items())
        if (path := "".join(_mark(x, each) for each in marked))
    }
    drawn = [
        Shape(f"line s{n}", _line(x, y, series, broken=broken), name)
        for n, (name, series) in enumerate(shown.items())
    ]
    said = " ".join(_said(f"{name}: ", series, unit) for name, series in shown.items())
    return Chart(
        title=title,
        note=note,
        label=f"{title}. {said}",
        shapes=[*grid(y.ticks), *spans.values(), *drawn],
        x_ticks=x.ticks,
        y_ticks=y.ticks,
        legend=_legend(shown) | {span.kind: name for name, span in spans.items()},
    )


def _largest(by_name: Mapping[str, Series]) -> dict[str, Series]:
    """The names with the largest sums in the order given; the rest as one, if there are many."""
    if len(by_name) <= COLOURS:
        return dict(by_name)
    ordered = sorted(by_name, key=lambda name: -sum(by_name[name].values()))
    kept = set(ordered[: COLOURS - 1])
    rest: dict[datetime, float] = {}
    for name in ordered[COLOURS - 1 :]:
        for at, value in by_name[name].items():
            rest[at] = rest.get(at, 0.0) + value
    return {name: by_name[name] for name in by_name if name in kept} | {OTHERS: rest}


def _bar(x: Axis, y: Axis, at: datetime, step: timedelta, low: float, high: float) -> str:
    left = WIDTH * x.at(at.timestamp())
    width = 0.84 * WIDTH * step.total_seconds() / (x.high - x.low)
    bottom, height = HEIGHT * (1 - y.at(low)), HEIGHT * (y.at(high) - y.at(low))
    return f"M{left:.4g} {bottom:.4g}v-{height:.4g}h{width:.4g}v{height:.4g}z"


def _line(x: Axis, y: Axis, series: Series, *, broken: bool) -> str:
    points = sorted(series.items())
    steps = [(after[0] - before[0]).total_seconds() for before, after in pairwise(points)]
    longest = timedelta(seconds=LONGEST_STEP * median(steps) if steps else 0)
    path = ""
    before = None
    for at, value in points:
        joined = before is not None and not (broken and at - before > longest)
        across, down = WIDTH * x.at(at.timestamp()), HEIGHT * (1 - y.at(value))
        # A dash, so that a point without neighbours is seen.
        path += f"L{across:.4g} {down:.4g}" if joined else f"M{across - 3:.4g} {down:.4g}h6"
        before = at
    return path


def _mark(x: Axis, marked: Marked) -> str:
    left = max(0.0, min(1.0, x.at(marked.start.timestamp())))
    right = max(0.0, min(1.0, x.at(marked.end.timestamp())))
    if right == left in (0.0, 1.0):
        return ""
    start, width = WIDTH * left, max(2.0, WIDTH * (right - left))
    return f"M{start:.4g} 0h{width:.4g}v{HEIGHT}H{start:.4g}z"


def _legend(shown: Mapping[str, Series]) -> dict[str, str]:
    return {f"fill s{n}": name for n, name in enumerate(shown)} if len(shown) > 1 else {}


def _said(name: str, series: Series, unit: Unit) -> str:
    """A series in words: from when to when, its highest value and its newest one."""
    first, last = min(series), max(series)
    highest = max(series, key=lambda at: series[at])
    return (
        f"{name}{_time(first)} to {_time(last)} UTC, at most {text_of(series[highest], unit)} at "
        f"{_time(highest)}, at the end {text_of(series[last], unit)}."
    )


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"
