"""Rows that are written again beside new ones, so that a commit is one that streams skip.

A stream that reads a Delta table skips a commit that takes a file out of it: rows were replaced,
and whoever replaced them recomputes what follows. A commit that only adds files is new input. So
days that had no row at all cannot simply be filled: the rows would reach every reader as new, far
behind its watermark. An hour of other rows is written again as it was, which makes it a change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from rivermark.lake.day_predicates import days_of, in_days, moments_between, span, stretch
from rivermark.lake.statistics import largest_in
from rivermark.model.table import Table

if TYPE_CHECKING:
    from pyarrow import dataset

HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True)
class Anchor:
    """Rows of the table, and the condition that tells exactly these."""

    rows: pa.Table
    predicate: str


def anchor_for(found: DeltaTable, table: Table, days: Iterable[date]) -> Anchor | None:
    """What to write again beside rows that fill those days; None where nothing needs to be.

    Nothing needs to be where a row is replaced, or where the table is empty: then nobody has read
    past it.
    """
    column = days_of(table).column
    rows = found.to_pyarrow_dataset()
    if rows.head(1, columns=[column], filter=in_days(table, days)).num_rows:
        return None
    newest = newest_in(found, column)
    if isinstance(newest, datetime):
        start = whole_hour(newest)
        same = moments_between(column, start, start + HOUR)
        return Anchor(rows.to_table(filter=same), span(column, start, start + HOUR))
    if newest is None:
        return None
    one_day = in_days(table, [newest])
    return Anchor(rows.to_table(filter=one_day), stretch(table, newest, newest))


def newest_in(
    found: DeltaTable, column: str, where: dataset.Expression | None = None
) -> date | datetime | None:
    """The newest moment or date of a column: of the whole table by its statistics, if it has any.

    Statistics cut a moment to milliseconds.
    """
    known = largest_in(found, column) if where is None else None
    if known is not None:
        return known
    values = found.to_pyarrow_dataset().to_table(columns=[column], filter=where)[column]
    read: date | datetime | None = pc.max(values).as_py()
    return read


def whole_hour(moment: datetime) -> datetime:
    """The start of the hour (UTC) that a moment lies in."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
