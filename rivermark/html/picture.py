"""Charts as a file of their own, for a console that has no page to put them on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from rivermark.html.chart import HEIGHT, WIDTH, Chart, Ranking
from rivermark.html.page import SHARED, pages_of

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
