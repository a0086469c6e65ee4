"""The SQL of a comparison for DuckDB, over the files of both sides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from rivermark.backfill.spark_comparison import OnSpark
from rivermark.lake.quoting import quoted
from rivermark.model.table import Table
from rivermark.quality.duckdb_sql import local_day, on_days

if TYPE_CHECKING:
    import duckdb

    Engine: TypeAlias = "DuckDb | OnSpark"
    """Where the rows lie as `published` and `computed`, and what dialects differ in."""


class DuckDb:
    """DuckDB over the files of both sides."""

    on_spark: Final = False
    no_digest: Final = "0::UBIGINT"

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: Table) -> None:
        self._connection, self._table = connection, table

    def name(self, column: str) -> str:
        """A column's name, quoted."""
        return quoted(column)

    def comparable(self, side: str, column: str) -> str:
        """A column as it can be compared and ordered."""
        return f"{side}{quoted(column)}"

    def day(self) -> str:
        """The day to which a row belongs."""
        return local_day(self._table)

    def on_days(self, days: Sequence[date]) -> str:
        """The rows of those days."""
        return f"({on_days(self._table, days)})"

    def bucket(self, columns: Iterable[str], buckets: int) -> str:
        """A number below so many, by the values of the columns."""
        return f"(hash({', '.join(map(quoted, columns))}) % {buckets})::BIGINT"

    def digests(self, columns: Iterable[str]) -> list[str]:
        """Numbers that tell rows of other values apart; sums of them do not overflow."""
        names = ", ".join(map(quoted, columns))
        return [f"hash({names})::HUGEINT", f"hash({names}, 1)::HUGEINT"]

    def digest(self, columns: Iterable[str]) -> str:
        """A number that tells one row's values from another's."""
        return f"hash({', '.join(map(quoted, columns))})"

    def joined(self, column: str) -> str:
        """The texts of a list as one."""
        return f"array_to_string({column}, ', ')"

    def listed(self, text: str) -> str:
        """A list of one text, given as a literal."""
        return f"[{text}]"

    def total(self, column: str) -> str:
        """The sum of a column."""
        return quoted(column)

    def row(self, side: str) -> str:
        """A side's row as a struct."""
        return side

    def keep(self, name: str, sql: str) -> None:
        """Make a temporary table of a query's rows."""
        self._connection.execute(f"CREATE TEMP TABLE {name} AS {sql}")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query whose answer is small."""
        return self._connection.execute(sql).fetchall()

    def result(self, sql: str) -> pa.RecordBatchReader:
        """The rows of a query, some at a time."""
        return self._connection.sql(sql).to_arrow_reader()

    def only(self, places: pa.Table) -> None:
        """Name the days and buckets whose rows are paired `differing`."""
        self._connection.register("differing", places)
