"""The SQL of a comparison for Spark, for days that are too large for one process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, IntegralType, MapType, StructType

from rivermark.lake.day_predicates import days_of, is_date, spark_day, spark_predicate
from rivermark.lake.quoting import spark_quoted
from rivermark.model.table import Table


class OnSpark:
    """Spark over frames by name; `table` is the one whose columns are compared."""

    on_spark: Final = True
    no_digest: Final = "0L"

    def __init__(self, frames: Mapping[str, DataFrame], table: Table) -> None:
        self._frames, self._table = dict(frames), table
        self._spark = next(iter(frames.values())).sparkSession

    def name(self, column: str) -> str:
        """A column's name, quoted."""
        return spark_quoted(column)

    def comparable(self, side: str, column: str) -> str:
        """A column as it can be compared and ordered: Spark does neither with maps."""
        name = f"{side}{spark_quoted(column)}"
        return f"to_json({name})" if _has_map(self._table.schema[column].dataType) else name

    def day(self) -> str:
        """The day to which a row belongs."""
        daily = days_of(self._table)
        column = spark_quoted(daily.column)
        return column if is_date(self._table) else spark_day(column, daily.zone)

    def on_days(self, days: Sequence[date]) -> str:
        """The rows of those days."""
        return f"({spark_predicate(self._table, days)})"

    def bucket(self, columns: Iterable[str], buckets: int) -> str:
        """A number below so many, by the values of the columns."""
        return f"pmod({self._hash(columns)}, {buckets})"

    def digests(self, columns: Iterable[str]) -> list[str]:
        """The halves of numbers of 64 bits: of two thousand million rows neither sum overflows."""
        names = [*columns]
        both = (self._hash(names), self._hash(names, "1"))
        return [half for h in both for half in (f"shiftright({h}, 32)", f"({h} & 4294967295)")]

    def digest(self, columns: Iterable[str]) -> str:
        """A number that tells one row's values from another's."""
        return self._hash(columns)

    def joined(self, column: str) -> str:
        """The texts of a list as one."""
        return f"array_join({column}, ', ')"

    def listed(self, text: str) -> str:
        """A list of one text, given as a literal."""
        return f"array({text})"

    def _hash(self, columns: Iterable[str], *seed: str) -> str:
        return f"xxhash64({', '.join([*(self.comparable('', c) for c in columns), *seed])})"

    def total(self, column: str) -> str:
        """The sum of a column: of whole numbers without the bounds of their type."""
        name = spark_quoted(column)
        whole = isinstance(self._table.schema[column].dataType, IntegralType)
        return f"CAST({name} AS DECIMAL(20, 0))" if whole else name

    def row(self, side: str) -> str:
        """A side's row as a struct."""
        names = (field.name for field in self._table.schema.fields)
        return f"struct({', '.join(f'{side}.{spark_quoted(name)}' for name in names)})"

    def keep(self, name: str, sql: str) -> None:
        """Name a query's rows; those that are asked for several times stay on disks."""
        frame = self.result(sql)
        self._frames[name] = frame.persist(StorageLevel.DISK_ONLY) if name == "paired" else frame

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query whose answer is small."""
        return [
            tuple(row.values())
            for row in self.result(sql).toArrow().to_pylist(maps_as_pydicts="strict")
        ]

    def only(self, places: pa.Table) -> None:
        """Name the days and buckets whose rows are paired `differing`."""
        self._frames["differing"] = self._spark.createDataFrame(places)

    def close(self) -> None:
        """Let go of what lies on disks."""
        if "paired" in self._frames:
            self._frames["paired"].unpersist()

    def result(self, sql: str) -> DataFrame:
        """The rows of a query, wherever they come to be."""
        # Views of their own: other comparisons of the session have theirs.
        mark = f"_{uuid4().hex}"
        for name, frame in self._frames.items():
            frame.createOrReplaceTempView(f"{name}{mark}")
        try:
            words = sql.split(" ")
            return self._spark.sql(
                " ".join(f"{word}{mark}" if word in self._frames else word for word in words)
            )
        finally:
            for name in self._frames:
                self._spark.catalog.dropTempView(f"{name}{mark}")


def _has_map(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_map(field.dataType) for field in kind.fields)
    return isinstance(kind, MapType) or (isinstance(kind, ArrayType) and _has_map(kind.elementType))
