"""Side outputs: further typed outputs of a process, each with its own table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, get_origin

from rivermark.model.errors import DeclarationError
from rivermark.process.evolution.storable import Storable

R = TypeVar("R")

_TAG: Final = re.compile(r"[a-z][a-z0-9_]*")


class SideOutput(Generic[R]):
    """A side output: its tag, which names its table, and the class of its rows.

    Declared on the class of a process, as `late = SideOutput("late_fares", Fare)`, and written with
    `ctx.output(self.late, fare)`. A stream sends it to a table by `side_rows("late_fares")`.

        >>> SideOutput("late_fares", int)
        SideOutput('late_fares', int)

    Raises:
        DeclarationError: The tag is not a name in lower case, such as 'late_fares', or `row` is no
            class.
    """

    __slots__ = ("row", "tag")

    def __init__(self, tag: str, row: type[R]) -> None:
        _check(tag, row)
        self.tag = tag
        self.row = row

    def __repr__(self) -> str:
        return f"SideOutput({self.tag!r}, {getattr(self.row, '__name__', self.row)})"


def _check(tag: object, row: object) -> None:
    if not isinstance(tag, str) or not _TAG.fullmatch(tag):
        raise DeclarationError(f"side output {tag!r}: expected a name like 'late_fares'")
    if not isinstance(row, type) and get_origin(row) is None:
        raise DeclarationError(
            f"side output '{tag}': {row!r} is not a class of rows; write a "
            "dataclass or msgspec.Struct"
        )


class Outputs:
    """The rows of a run: main rows, side rows by tag, and dead letters, each in order of writing.

    `late` is the number of its events that were at or before the watermark; `counters` and `gauges`
    are the process's own numbers, by name.
    """

    __slots__ = ("counters", "dead", "gauges", "late", "main", "sides")

    def __init__(self, tags: tuple[str, ...]) -> None:
        self.main: list[Any] = []
        self.sides: dict[str, list[Any]] = {tag: [] for tag in tags}
        self.dead: list[Any] = []
        self.late = 0
        self.counters: dict[str, int] = {}
        self.gauges: dict[str, float] = {}

    def extend(self, later: Outputs) -> None:
        """Append what a later batch wrote."""
        self.main.extend(later.main)
        for tag, rows in later.sides.items():
            self.sides[tag].extend(rows)
        self.dead.extend(later.dead)
        self.late += later.late
        for name, count in later.counters.items():
            self.counters[name] = self.counters.get(name, 0) + count
        self.gauges.update(later.gauges)

    def sizes(self) -> list[int]:
        """The numbers of rows written so far, main first: a mark to go back to."""
        return [len(self.main), *map(len, self.sides.values())]

    def cut(self, sizes: list[int]) -> None:
        """Take back what was written since `sizes`."""
        for rows, size in zip([self.main, *self.sides.values()], sizes, strict=True):
            del rows[size:]


@dataclass(frozen=True)
class SideSpec:
    """A declared side output and the type of its rows."""

    side: SideOutput[Any]
    row: Storable
