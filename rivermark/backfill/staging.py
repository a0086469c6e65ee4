"""What was computed, before anybody decides what becomes of it: files beside the tables.

A computing that is compared, and perhaps replaces what is published, must run once and must not
hold a table's commit lock meanwhile. So Spark writes its rows to `<lake>/_staged/<id>`, from where
they are compared, kept as a side table, or committed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermark.backfill.ordered_rows import ordered_rows
from rivermark.lake.day_predicates import condition
from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.model.stream import Stream
from rivermark.model.table import Table, days_between

if TYPE_CHECKING:
    from pyarrow import dataset

STAGED: Final = "_staged"
MARK: Final = "_goes_to_"


@dataclass(frozen=True)
class Staged:
    """Computed rows on disk; `tables` are the stream's, in the order of their marks."""

    folder: str
    tables: tuple[Table, ...]

    def rows(self, table: Table) -> dataset.Dataset:
        """The rows of one of the tables."""
        from pyarrow import compute, dataset

        store, path = filesystem(self.folder)
        found = dataset.dataset(path, filesystem=store, format="parquet")
        mark = f"{MARK}{self.tables.index(table)}"
        return found.filter(compute.field(mark))

    def ordered(self, table: Table, days: Collection[date]) -> pa.Table:
        """The rows of one of the tables for the days, always in the same order."""
        return ordered_rows(self.rows(table), table, days)


@contextmanager
def staged(
    lake: Lake, name: str, stream: Stream, built: DataFrame, first: date, last: date
) -> Iterator[Staged]:
    """Run the computing, once for all tables of the stream, and keep its rows for a block."""
    folder = f"{lake.root}/{STAGED}/{name}"
    store, path = filesystem(folder)
    try:
        marked(stream, built, first, last).write.mode("overwrite").parquet(folder)
        yield Staged(folder, stream.tables)
    finally:
        if store.get_file_info(path).type.name == "Directory":
            store.delete_dir(path)


def marked(stream: Stream, built: DataFrame, first: date, last: date) -> DataFrame:
    """The built rows that any table takes, each with a mark for every table that does."""
    days = days_between(first, last)
    marks = {}
    for number, output in enumerate(stream.outputs):
        mine = condition(output.table, days)
        if output.where is not None:
            mine = output.where() & mine
        marks[f"{MARK}{number}"] = F.coalesce(mine, F.lit(False))
    names = dict.fromkeys(f.name for table in stream.tables for f in table.schema.fields)
    rows = built.where(reduce(or_, marks.values()))
    if len(marks) == 1:
        # The condition is not computed a second time for rows that passed it.
        marks = {name: F.lit(True) for name in marks}
    return rows.select(*names, *[mark.alias(name) for name, mark in marks.items()])
