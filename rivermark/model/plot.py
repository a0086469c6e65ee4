"""Published results that a person looks at first, declared as plots for the dashboard."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pyspark.sql.types import DateType, NumericType, TimestampType

from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.nearest import did_you_mean
from rivermark.model.table import Table


@declared("marks", lambda values: values.get("name"))
@dataclass(frozen=True, kw_only=True)
class Marks:
    """Instants or spans (UTC) of a table that a plot over time marks, such as alerts or gaps.

        Marks(name="gaps", table=GAPS, start="last_before", end="first_after")

    `start` is a timestamp column; `end` is another one if a row is a span of time.

    Raises:
        DeclarationError: A column is not one of the table, or is no timestamp.
    """

    name: str
    table: Table
    start: str
    end: str | None = None

    def __post_init__(self) -> None:
        marks = f"marks '{self.name}'"
        for column in (self.start, self.start if self.end is None else self.end):
            _check_column(marks, self.table, column, TimestampType)


@declared("plot", lambda values: values.get("title"))
@dataclass(frozen=True, kw_only=True)
class Plot:
    """A picture of a table on the dashboard: its values over time, or by name.

        Plot(title="Tips of the best driver", table=WINNERS, x="window_start", y="tips", unit="USD")

    `y` is a numeric column; without one the rows are counted. If `x` is a timestamp (UTC) or a
    date, the rows are combined by spans of time, as `bars` or as a `line`; otherwise by value, and
    the largest are ranked as bars. `combine` says how. `by` makes a line for each of its values.
    `unit` stands beside the title. `marks` are instants and spans that a line marks. Lines are
    broken where rows are missing.

    Raises:
        DeclarationError: A column is not one of the table, is of another type, or is personal.
    """

    title: str
    table: Table
    x: str
    y: str | None = None
    kind: Literal["bars", "line"] = "bars"
    combine: Literal["sum", "mean", "min", "max"] = "sum"
    by: str | None = None
    unit: str = ""
    marks: tuple[Marks, ...] = ()

    def __post_init__(self) -> None:
        plot = f"plot '{self.title}'"
        _check_column(plot, self.table, self.x)
        if self.y is not None:
            _check_column(plot, self.table, self.y, NumericType)
        if self.by is not None:
            _check_column(plot, self.table, self.by)
        if self.kind == "line" and not self.over_time:
            raise DeclarationError(
                f"{plot}: a line needs a timestamp or date as `x`, and '{self.x}' is neither"
            )
        if self.kind == "bars" and (self.by is not None or self.marks):
            raise DeclarationError(f"{plot}: only a line has `by` and `marks`; set kind='line'")

    @property
    def over_time(self) -> bool:
        """True if the values are shown over time."""
        return isinstance(self.table.schema[self.x].dataType, TimestampType | DateType)

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that it reads."""
        return (self.table, *(marks.table for marks in self.marks))


def _check_column(declaration: str, table: Table, column: str, kind: type | None = None) -> None:
    names: Iterable[str] = table.schema.names
    if column not in names:
        raise DeclarationError(
            f"{declaration}: table '{table.name}' has no column '{column}'"
            f"{did_you_mean(column, names) or ';'} it has {', '.join(names)}"
        )
    if column in table.personal:
        raise DeclarationError(
            f"{declaration}: '{column}' of '{table.name}' is personal, and no page shows its values"
        )
    if kind is not None and not isinstance(table.schema[column].dataType, kind):
        word = "timestamp" if kind is TimestampType else "numeric"
        raise DeclarationError(
            f"{declaration}: '{column}' of '{table.name}' is not a {word} column"
        )
