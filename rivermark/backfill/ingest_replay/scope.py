"""The rows that a replacement may touch, and the engine that reads them: DuckDB or Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow.compute as pc

from rivermark.backfill.context import BackfillContext
from rivermark.backfill.duckdb_comparison import DuckDb
from rivermark.backfill.spark_comparison import OnSpark
from rivermark.lake.delta import dataset_of, delta_table, read_delta
from rivermark.lake.quoting import quoted_text, spark_quoted_text
from rivermark.lake.sql import spilling_connection
from rivermark.model.table import Table
from rivermark.runtime.spark.input_size import DRIVER_BYTES

if TYPE_CHECKING:
    from pyarrow import dataset

Engine: TypeAlias = DuckDb | OnSpark
Opened: TypeAlias = tuple[Table, int | None]
"""A table, and the version of it that is read; the newest without one."""
PLACE: Final = "_ingest_batch, _file, _row"


@dataclass(frozen=True)
class Scope:
    """The rows of planned batches (both included), or those of one file of them."""

    first: int
    last: int
    file: str | None = None

    def sql(self, *, spark: bool = False, batch: str = "_ingest_batch", file: str = "_file") -> str:
        """As a condition of DuckDB and delta-rs, or of Spark."""
        own = f"{batch} >= {self.first} AND {batch} <= {self.last}"
        if self.file is None:
            return f"( {own} )"
        name = spark_quoted_text(self.file) if spark else quoted_text(self.file)
        return f"( {own} AND {file} = {name} )"

    def filter(self, batch: str = "_ingest_batch", file: str = "_file") -> dataset.Expression:
        """As a filter of Arrow."""
        own = (pc.field(batch) >= self.first) & (pc.field(batch) <= self.last)
        return own if self.file is None else own & (pc.field(file) == self.file)

    def to_json(self) -> list[Any]:
        """As it is kept in a commit's metadata."""
        return [self.first, self.last, self.file]


@contextmanager
def engine_over(
    context: BackfillContext, tables: Mapping[str, Opened], kept: Table, scope: Scope
) -> Iterator[Engine]:
    """An engine with tables by name: Spark where the rows of the scope are many, else DuckDB."""
    paths = {n: (context.lake.path(table), version) for n, (table, version) in tables.items()}
    rows = {n: dataset_of(delta_table(path, version)) for n, (path, version) in paths.items()}
    if sum(each.size(scope.filter()) for n, each in rows.items() if n != "moved") <= DRIVER_BYTES:
        with spilling_connection(rows) as connection:
            yield DuckDb(connection, kept)
        return
    frames = {n: read_delta(context.spark(), *opened) for n, opened in paths.items()}
    engine = OnSpark(frames, kept)
    try:
        yield engine
    finally:
        engine.close()


def flat(sql: str, **values: str) -> str:
    """A query in one line, with its parts filled in."""
    return " ".join(sql.split()).format(place=PLACE, **values)
