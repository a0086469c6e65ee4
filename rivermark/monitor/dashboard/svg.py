"""Small pictures in SVG: a heat map of hours, a strip of days, bars, a curve, a row of looks.

Colours are classes of the page's style, so that light and dark are its business. Each picture has a
role and a label that says in words what it shows; the numbers stand in a table beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final

from rivermark.html.markup import Markup, tag

CELL: Final = 14
LABEL: Final = 84
STEPS: Final = 4
HOURS: Final = 24


def heat_map(days: Sequence[date], cells: Mapping[tuple[date, int], str], label: str) -> Markup:
    """A row a day (newest first), a column an hour (of the days' zone).

    `cells` give the class of a cell by day and hour: h0 (no row) to h4 (many), `miss` for an hour
    that lacks its rows, `thin` for one that lacks some. Cells of one class are one path, so that a
    year of hours stays small.
    """
    place = {day: n for n, day in enumerate(sorted(days, reverse=True))}
    paths: dict[str, list[str]] = {}
    for (day, hour), kind in cells.items():
        x, y = LABEL + hour * CELL, 18 + place[day] * CELL
        paths.setdefault(kind, []).append(f"M{x} {y}h12v12h-12z")
        if kind == "miss":
            # A cross too: a missing hour is told without any colour.
            paths.setdefault("cross", []).append(f"M{x + 3} {y + 3}l6 6m0-6l-6 6")
    height, width = 20 + len(days) * CELL, LABEL + HOURS * CELL
    return tag(
        "svg",
        tag("title", label),
        (tag("text", f"{hour:02}", x=LABEL + hour * CELL, y=12) for hour in range(0, HOURS, 3)),
        (
            tag("text", f"{day:%a %d %b}", x=0, y=18 + n * CELL + 10)
            for day, n in place.items()
            if len(place) <= 14 or n % 2 == 0
        ),
        (
            tag("path", d="".join(found), class_=kind)
            for kind, found in sorted(paths.items(), key=_last)
        ),
        viewbox=f"0 0 {width} {height}",
        role="img",
        aria_label=label,
        class_="heat",
        style=f"max-width:{width * 2}px",
    )


def day_strip(states: Mapping[date, str], label: str) -> Markup:
    """A column a week, a row a weekday, a cell a day in the colour of its state."""
    if not states:
        return Markup("")
    first, last = min(states), max(states)
    monday = first - timedelta(days=first.weekday())
    paths: dict[str, list[str]] = {}
    for day, state in states.items():
        week, weekday = divmod((day - monday).days, 7)
        x, y = 30 + week * CELL, 16 + weekday * CELL
        paths.setdefault(state, []).append(f"M{x} {y}h12v12h-12z")
        if state == "fail":
            paths.setdefault("cross", []).append(f"M{x + 3} {y + 3}l6 6m0-6l-6 6")
        if state == "warn":
            paths.setdefault("cross", []).append(f"M{x + 3} {y + 6}h6")
    weeks = (last - monday).days // 7 + 1
    months = {
        (day.year, day.month): (day - monday).days // 7
        for day in sorted(states, reverse=True)
        if day.day <= 7
    }
    width = 30 + max(weeks, 8) * CELL
    return tag(
        "svg",
        tag("title", label),
        (
            tag("text", f"{date(year, month, 1):%b}", x=30 + week * CELL, y=11)
            for (year, month), week in months.items()
        ),
        (tag("text", name, x=0, y=16 + n * CELL + 10) for n, name in ((0, "Mon"), (3, "Thu"))),
        (
            tag("path", d="".join(found), class_=kind)
            for kind, found in sorted(paths.items(), key=_last)
        ),
        viewbox=f"0 0 {width} {18 + 7 * CELL}",
        role="img",
        aria_label=label,
        class_="strip",
        style=f"max-width:{round(width * 1.3)}px",
    )


def bars(values: Mapping[datetime, int], end: datetime, hours: int, label: str) -> Markup:
    """A bar an hour, so many hours up to `end`."""
    last = end.replace(minute=0, second=0, microsecond=0)
    shown = [last - timedelta(hours=n) for n in reversed(range(hours))]
    most = max((values.get(hour, 0) for hour in shown), default=0)
    tall = {n: max(1.0, 23 * values[h] / most) for n, h in enumerate(shown) if values.get(h)}
    path = "".join(f"M{n * 4} 24v-{up:.3g}h3v{up:.3g}z" for n, up in tall.items())
    return tag(
        "svg",
        tag("title", label),
        tag("path", d=f"M0 24.5h{hours * 4}", class_="axis"),
        tag("path", d=path, class_="bar") if path else None,
        viewbox=f"0 0 {hours * 4} 25",
        role="img",
        aria_label=label,
        class_="bars",
    )


def curve(points: Sequence[tuple[str, float]], marked: Mapping[int, str], label: str) -> Markup:
    """Shares (0 to 1) as columns on a logarithmic height from 0.001 % to 100 %, some marked."""

    def height(share: float) -> float:
        from math import log10

        return 0.0 if share <= 0 else max(0.0, 10 * (log10(share) + 5))

    columns = []
    for n, (_, share) in enumerate(points):
        # A marked column is seen also where no row would be late.
        tall = max(3.0 if n in marked else 0.8, height(share))
        place = f"M{34 + n * 18} 60v-{tall:.3g}h14v{tall:.3g}z"
        columns.append(tag("path", d=place, class_=marked.get(n, "bar")))
    width = 40 + len(points) * 18
    return tag(
        "svg",
        tag("title", label),
        (
            tag("text", told, x=0, y=63 - 10 * n)
            for n, told in ((0, "0"), (2, "0.1 %"), (4, "10 %"))
        ),
        tag("path", d="".join(f"M34 {60 - 10 * n}h{width - 40}" for n in (0, 2, 4)), class_="axis"),
        columns,
        (
            tag("text", name, x=41 + n * 18, y=74, class_="mid")
            for n, (name, _) in enumerate(points)
        ),
        viewbox=f"0 0 {width} 78",
        role="img",
        aria_label=label,
        class_="curve",
        style=f"max-width:{width * 2}px",
    )


def looks(results: Sequence[str], label: str) -> Markup:
    """A mark a look, oldest first: low where the claim held, high where it did not."""
    marks = {
        "held": lambda x: f"M{x} 12h4v3h-4z",
        "warn": lambda x: f"M{x} 7h4v8h-4z",
        "error": lambda x: f"M{x} 1h4v14h-4z",
        "unanswered": lambda x: f"M{x} 9h4v1h-4z",
    }
    kinds = {"held": "complete", "warn": "warn", "error": "fail", "unanswered": "open"}
    paths: dict[str, list[str]] = {}
    for n, result in enumerate(results):
        paths.setdefault(kinds[result], []).append(marks[result](n * 5))
    return tag(
        "svg",
        tag("title", label),
        (tag("path", d="".join(found), class_=kind) for kind, found in paths.items()),
        viewbox=f"0 0 {max(50, len(results) * 5)} 16",
        width=max(50, len(results) * 5),
        height=16,
        role="img",
        aria_label=label,
        class_="looks",
    )


def step(rows: int, most: int) -> str:
    """The class of a cell by its share of the fullest one."""
    if not rows or not most:
        return "h0"
    return f"h{min(STEPS, 1 + STEPS * rows // (most + 1))}"


def _last(found: tuple[str, list[str]]) -> tuple[bool, str]:
    """Crosses lie on top."""
    return found[0] == "cross", found[0]
