"""Rows that are written again beside new ones, so that a commit is one that streams skip.

A stream that reads a Delta table skips a commit that takes a file out of it: rows were replaced,
and a recompute of what follows is started with it. A commit that only adds files is new input. So
days that had no row at all cannot simply be filled: the rows would reach every reader as new, far
behind its watermark. A second of other rows is written again as it was, which makes it a change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from rivermark.lake.day_predicates import (
    days_of,
    in_days,
    moments_between,
    moments_predicate,
    range_predicate,
)
from rivermark.lake.delta import damage_named, dataset_of, read_rows
from rivermark.lake.statistics import largest_in
from rivermark.model.table import Table

if TYPE_CHECKING:
    pass

SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True)
class Rewritten:
    """Rows of the table, and the condition that selects exactly these."""

    rows: pa.Table
    predicate: str


def rows_to_rewrite(delta: DeltaTable, table: Table, days: Iterable[date]) -> Rewritten | None:
    """Rows to write again beside rows that fill those days; None where none need to be.

    Nothing needs to be where a row is replaced, or where the table is empty, so that no stream has
    read past it.
    """
    column = days_of(table).column
    rows = dataset_of(delta)
    with damage_named(rows):
        first = rows.head(1, columns=[column], filter=in_days(table, days))
    if first.num_rows:
        return None
    newest = newest_in(delta, column)
    if isinstance(newest, datetime):
        start = whole_second(newest)
        same = moments_between(column, start, start + SECOND)
        return Rewritten(
            read_rows(rows, filter=same), moments_predicate(column, start, start + SECOND)
        )
    if newest is None:
        return None
    one_day = in_days(table, [newest])
    return Rewritten(read_rows(rows, filter=one_day), range_predicate(table, newest, newest))


def newest_in(delta: DeltaTable, column: str) -> date | datetime | None:
    """The newest moment or date of a column: of the whole table by its statistics, if it has any.

    Statistics cut a moment to milliseconds.
    """
    known = largest_in(delta, column)
    if known is not None:
        return known
    values = read_rows(dataset_of(delta), columns=[column])[column]
    read: date | datetime | None = pc.max(values).as_py()
    return read


def whole_second(moment: datetime) -> datetime:
    """The start of the second (UTC) that a moment lies in."""
    return moment.astimezone(UTC).replace(microsecond=0)
