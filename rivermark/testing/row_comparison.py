"""Compares tables in a test, and shows both with the rows marked that differ."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Rows: TypeAlias = "DataFrame | pa.Table | Iterable[Any]"

_MOST_SHOWN: Final = 30
"""Rows of each table in a message; the ones that differ come first."""

_WIDEST: Final = 60
"""Characters of a cell in a message."""


def assert_rows_equal(
    actual: Rows,
    expected: Rows,
    *,
    columns: Sequence[str] | None = None,
    in_order: bool = False,
) -> None:
    """Assert that two tables hold the same rows, each as often; their order does not count.

        >>> rides = pa.table({"ride": [1, 2], "fare": [12.5, 3.0]})
        >>> assert_rows_equal(rides, [(2, 3.0), (1, 12.5)])

    A table is a Spark DataFrame (its job runs), an Arrow table, or rows: dicts, Spark `Row`s,
    msgspec Structs, dataclasses, named or plain tuples. Columns are matched by name; plain tuples
    have those of the other table, in order. Values are equal as Python has it, except that NaN
    equals NaN, and that instants are compared: a datetime without a zone is in local time, as
    `DataFrame.collect` returns it.

    Args:
        actual: What was computed.
        expected: What it should be.
        columns: Compare these columns only. Plain tuples have exactly these.
        in_order: Compare the n-th row with the n-th row.

    Raises:
        AssertionError: Rows or columns differ. The message shows both tables, rows that the other
            one does not have marked with `>`.
        ValueError: A row of plain values has another length than there are columns.
    """
    left, right = _Table(actual), _Table(expected)
    names = list(columns or left.names or right.names or ())
    if columns is None and left.names and right.names and set(left.names) != set(right.names):
        raise AssertionError(
            f"columns differ: only in actual {_without(left.names, right.names)}, "
            f"only in expected {_without(right.names, left.names)}"
        )
    ours, theirs = left.select(names), right.select(names)
    if in_order:
        marks = [one != other for one, other in zip(ours, theirs, strict=False)]
        rest = abs(len(ours) - len(theirs)) * [True]
        our_marks, their_marks = (marks + rest)[: len(ours)], (marks + rest)[: len(theirs)]
    else:
        ours.sort(key=repr)
        theirs.sort(key=repr)
        our_marks, their_marks = _unmatched(ours, theirs), _unmatched(theirs, ours)
    if any(our_marks) or any(their_marks):
        raise AssertionError(
            f"rows differ: {sum(our_marks)} of {len(ours)} in actual, "
            f"{sum(their_marks)} of {len(theirs)} in expected\n"
            f"actual:\n{_drawn(names, ours, our_marks)}\n"
            f"expected:\n{_drawn(names, theirs, their_marks)}"
        )


class _Table:
    """Rows of any form: dicts by column name, or tuples where no form says the names."""

    def __init__(self, rows: Rows) -> None:
        self.names: tuple[str, ...] = ()
        if isinstance(rows, pa.Table):
            self.names = tuple(rows.column_names)
            values = [column.to_pylist(maps_as_pydicts="strict") for column in rows.columns]
            self.rows: list[Any] = [
                dict(zip(self.names, row, strict=True)) for row in zip(*values, strict=True)
            ]
            return
        if hasattr(rows, "columns") and hasattr(rows, "collect"):
            self.names = tuple(rows.columns)
            rows = rows.collect()
        self.rows = [_by_name(row) for row in rows]
        if not self.names:
            named = (row for row in self.rows if isinstance(row, dict))
            self.names = tuple(dict.fromkeys(name for row in named for name in row))

    def select(self, names: Sequence[str]) -> list[tuple[Hashable, ...]]:
        """The rows by these columns, as values that can be compared and counted."""
        return [
            tuple(
                _comparable(value)
                for value in (
                    (row.get(name, _MISSING) for name in names)
                    if isinstance(row, dict)
                    else _of_length(row, names)
                )
            )
            for row in self.rows
        ]


class _Missing:
    def __repr__(self) -> str:
        return "(no such column)"


_MISSING: Final = _Missing()


def _by_name(row: Any) -> dict[str, Any] | tuple[Any, ...]:
    match row:
        case Mapping():
            return dict(row)
        case tuple():
            names = getattr(row, "__fields__", None) or getattr(row, "_fields", None)
            return dict(zip(names, row, strict=True)) if names else row
        case list():
            return tuple(row)
    if dataclasses.is_dataclass(row):
        return {each.name: getattr(row, each.name) for each in dataclasses.fields(row)}
    names = getattr(row, "__struct_fields__", None)
    if names is None:
        raise TypeError(f"{row!r} is no row: expected a dict, tuple, Row, Struct or dataclass")
    return {name: getattr(row, name) for name in names}


def _of_length(row: tuple[Any, ...], names: Sequence[str]) -> tuple[Any, ...]:
    if names and len(row) != len(names):
        raise ValueError(f"{row!r} has {len(row)} values for the columns {', '.join(names)}")
    return row


def _comparable(value: Any) -> Hashable:
    match value:
        case datetime():
            return value.astimezone(UTC)
        case float() if value != value:
            return "NaN"
        case Mapping():
            return frozenset((_comparable(k), _comparable(v)) for k, v in value.items())
        case tuple() if hasattr(value, "__fields__"):
            return _comparable(_by_name(value))
        case list() | tuple():
            return tuple(map(_comparable, value))
        case bytearray():
            return bytes(value)
        case set():
            return frozenset(map(_comparable, value))
        case Hashable():
            return value
    return repr(value)


def _without(names: Sequence[str], others: Sequence[str]) -> list[str]:
    return [name for name in names if name not in others]


def _unmatched(rows: Sequence[Hashable], others: Sequence[Hashable]) -> list[bool]:
    """For each row whether `others` has too few like it."""
    left = Counter(others)
    marks = []
    for row in rows:
        marks.append(left[row] <= 0)
        left[row] -= 1
    return marks


def _drawn(
    names: Sequence[str], rows: Sequence[tuple[Hashable, ...]], marks: Sequence[bool]
) -> str:
    """A table as text; of a long one the equal rows are left out first."""
    width = len(names) or max(map(len, rows), default=0)
    by_need = sorted(range(len(rows)), key=lambda place: not marks[place])
    shown = sorted(by_need[:_MOST_SHOWN])
    cells = [[*(names or map(str, range(width)))]] + [
        [_cell(value) for value in rows[place]] for place in shown
    ]
    cells = [row + [""] * (width - len(row)) for row in cells]
    widths = [max(len(row[place]) for row in cells) for place in range(width)]
    lines = [" | ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
    body = [
        f"{'>' if marks[place] else ' '} {line}"
        for place, line in zip(shown, lines[1:], strict=True)
    ]
    left_out = len(rows) - len(shown)
    more = [f"  ... {left_out} more"] if left_out else []
    return "\n".join([f"  {lines[0]}", *body, *more])


def _cell(value: Any) -> str:
    text = value.isoformat() if isinstance(value, datetime) else repr(value)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
