"""Charts as values, drawn by `chart.html`, or as a file by `picture.svg`.

The shapes stretch with the window and the texts around them do not, so that a chart can be read on
a phone. Colours are classes of the pages' style, which has light and dark; a label says in words
what a chart shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log10
from typing import Final, NamedTuple

from rivermark.html.axis import Tick, Unit, text_of

WIDTH: Final = 1000
HEIGHT: Final = 200
DECADES: Final = 5
"""Powers of ten that a logarithmic chart of shares shows."""


class Shape(NamedTuple):
    """A path of a class, in a field of WIDTH by HEIGHT; the title is shown on pointing at it."""

    kind: str
    path: str
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Shapes with the ticks of their axes; `legend` has names by class."""

    title: str
    note: str
    label: str
    shapes: Sequence[Shape]
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    legend: Mapping[str, str]


class Rank(NamedTuple):
    """A bar with its name; `share` is its part of the longest one."""

    name: str
    value: str
    share: float


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Bars of named values, the largest first."""

    title: str
    note: str
    ranks: Sequence[Rank]


def share_columns(
    title: str,
    points: Sequence[tuple[str, float]],
    marked: Mapping[int, str],
    legend: Mapping[str, str],
    *,
    note: str,
) -> Chart:
    """Shares (0 to 1) by name as columns of logarithmic height, from 0.001 % to 100 %.

    `marked` are classes of columns by their position, which `legend` names.
    """
    width = WIDTH / len(points)
    shapes = []
    for n, (name, share) in enumerate(points):
        height = max(0.0, HEIGHT * (1 + log10(share) / DECADES)) if share > 0 else 0.0
        # A marked column is visible also where no row would be late.
        height = max(8.0 if n in marked else 2.0, height)
        path = f"M{n * width:.4g} {HEIGHT}v-{height:.4g}h{0.8 * width:.4g}v{height:.4g}z"
        shapes.append(Shape(marked.get(n, "bar"), path, f"{name}: {share:.3%}"))
    shares = ((0.0, "0"), (1e-3, "0.1 %"), (1e-2, "1 %"), (1e-1, "10 %"), (1.0, "100 %"))
    ticks = [Tick(1 + log10(share) / DECADES if share else 0.0, text) for share, text in shares]
    return Chart(
        title=title,
        note=note,
        label=f"{title}. {note}",
        shapes=[*grid(ticks), *shapes],
        x_ticks=[Tick((n + 0.4) / len(points), name) for n, (name, _) in enumerate(points)][::2],
        y_ticks=ticks,
        legend={kind: name for kind, name in legend.items() if kind in marked.values()},
    )


def ranking(title: str, values: Mapping[str, float], *, note: str = "", unit: Unit) -> Ranking:
    """Named values as bars, the largest first."""
    ranked = sorted(values.items(), key=lambda each: (-each[1], each[0]))
    longest = max(map(abs, values.values())) or 1
    return Ranking(
        title=title,
        note=note,
        ranks=[
            Rank(name, text_of(value, unit), max(0.0, value / longest)) for name, value in ranked
        ],
    )


def grid(ticks: Iterable[Tick]) -> list[Shape]:
    """A line across the chart at each value that is named."""
    path = "".join(f"M0 {HEIGHT * (1 - tick.at):.4g}h{WIDTH}" for tick in ticks)
    return [Shape("grid-line", path)]
