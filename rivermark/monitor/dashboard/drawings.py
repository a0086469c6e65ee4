"""Small SVG drawings as values: a heat map of hours, days by state, bars, results.

Colours are classes of the page's style, which has light and dark. Each drawing has a label that
says in words what it shows; the numbers are in a table beside it. `drawing.html` draws them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, NamedTuple

CELL: Final = 14
LABEL: Final = 84
STEPS: Final = 4
HOURS: Final = 24


class Text(NamedTuple):
    """A text in a drawing."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """Paths by class and texts; all of a class are one path, so that a year stays small."""

    kind: str
    label: str
    width: int
    height: int
    paths: Mapping[str, str]
    texts: Sequence[Text] = ()
    max_width: int | None = None


def heat_map(days: Sequence[date], cells: Mapping[tuple[date, int], str], label: str) -> Drawing:
    """A row a day (newest first), a column an hour (of the days' zone).

    `cells` are the classes of cells by day and hour: h0 (no row) to h4 (many), `miss` for an hour
    that lacks its rows, `thin` for one that lacks some.
    """
    rows = {day: n for n, day in enumerate(sorted(days, reverse=True))}
    paths: dict[str, str] = defaultdict(str)
    for (day, hour), kind in cells.items():
        _add_cell(paths, kind, LABEL + hour * CELL, 18 + rows[day] * CELL)
    width = LABEL + HOURS * CELL
    return Drawing(
        kind="heat",
        label=label,
        width=width,
        height=20 + len(days) * CELL,
        paths=_crosses_last(paths),
        texts=[
            *(Text(LABEL + hour * CELL, 12, f"{hour:02}") for hour in range(0, HOURS, 3)),
            *(
                Text(0, 28 + n * CELL, f"{day:%a %d %b}")
                for day, n in rows.items()
                if len(rows) <= 14 or n % 2 == 0
            ),
        ],
        max_width=2 * width,
    )


def day_strip(states: Mapping[date, str], label: str) -> Drawing:
    """A column a week, a row a weekday, a cell a day in the colour of its state."""
    first, last = min(states), max(states)
    monday = first - timedelta(days=first.weekday())
    paths: dict[str, str] = defaultdict(str)
    for day, state in states.items():
        week, weekday = divmod((day - monday).days, 7)
        _add_cell(paths, state, 30 + week * CELL, 16 + weekday * CELL)
    months = {
        f"{day:%Y %b}": (day - monday).days // 7
        for day in sorted(states, reverse=True)
        if day.day <= 7
    }
    width = 30 + max((last - monday).days // 7 + 1, 8) * CELL
    return Drawing(
        kind="strip",
        label=label,
        width=width,
        height=18 + 7 * CELL,
        paths=_crosses_last(paths),
        texts=[
            *(Text(30 + week * CELL, 11, month[5:]) for month, week in months.items()),
            *(Text(0, 26 + n * CELL, weekday) for n, weekday in ((0, "Mon"), (3, "Thu"))),
        ],
        max_width=round(1.3 * width),
    )


def day_row(states: Mapping[date, str], label: str) -> Drawing:
    """A cell a day in the colour of its state, the newest right."""
    paths: dict[str, str] = defaultdict(str)
    for n, (_, state) in enumerate(sorted(states.items())):
        _add_cell(paths, state, n * CELL, 1, height=16)
    width = max(len(states), 8) * CELL
    return Drawing(
        kind="row",
        label=label,
        width=width,
        height=18,
        paths=_crosses_last(paths),
        max_width=width,
    )


def bars(rows: Sequence[int]) -> Drawing:
    """A bar for each number of rows."""
    most = max(max(rows, default=0), 1)
    heights = {n: max(1.0, 23 * number / most) for n, number in enumerate(rows) if number}
    path = "".join(f"M{n * 4} 24v-{up:.3g}h3v{up:.3g}z" for n, up in heights.items())
    width = max(len(rows), 48) * 4
    return Drawing(
        kind="spark",
        label=f"{sum(rows):,} rows",
        width=width,
        height=25,
        paths={"axis": f"M0 24.5h{width}", **({"bar": path} if path else {})},
    )


def history(results: Sequence[str]) -> Drawing:
    """A mark a result, oldest first: low where the check held, high where it did not."""
    shapes = {
        "held": ("complete", "12h4v3h-4z"),
        "warn": ("warn", "7h4v8h-4z"),
        "error": ("fail", "1h4v14h-4z"),
        "unanswered": ("open", "9h4v1h-4z"),
    }
    paths: dict[str, str] = defaultdict(str)
    for n, result in enumerate(results):
        kind, shape = shapes[result]
        paths[kind] += f"M{n * 5} {shape}"
    return Drawing(
        kind="results",
        label=f"held {list(results).count('held')} of {len(results)} times",
        width=max(50, len(results) * 5),
        height=16,
        paths=paths,
    )


def step(rows: int, most: int) -> str:
    """The class of a cell by its share of the fullest one."""
    if not rows or not most:
        return "h0"
    return f"h{min(STEPS, 1 + STEPS * rows // (most + 1))}"


def _add_cell(paths: dict[str, str], kind: str, x: int, y: int, height: int = 12) -> None:
    """A cell in the colour of its class, with a cross or a dash where something is wrong."""
    paths[kind] += f"M{x} {y}h12v{height}h-12z"
    if kind in ("miss", "fail"):
        paths["cross"] += f"M{x + 3} {y + height // 2 - 3}l6 6m0-6l-6 6"
    if kind == "warn":
        paths["cross"] += f"M{x + 3} {y + height // 2}h6"


def _crosses_last(paths: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(paths.items(), key=lambda path: path[0] == "cross"))
