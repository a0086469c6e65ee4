"""SQL over Delta tables, run by DuckDB in this process. Values are bound, never pasted."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import duckdb

from rivermark.lake.delta import damage_named

if TYPE_CHECKING:
    # Arrow's datasets import pandas, which takes a second: not before the first query.
    import pyarrow as pa
    from pyarrow import dataset

    Rows: TypeAlias = dataset.Dataset | pa.Table


def query(
    sql: str,
    tables: Mapping[str, Rows],
    values: Sequence[object] | Mapping[str, object] = (),
) -> list[dict[str, Any]]:
    """The rows of the result."""
    with connection(tables) as duck:
        result = duck.execute(sql, values or None)
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


@contextmanager
def connection(tables: Mapping[str, Rows]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB connection with the tables, for several queries in a row or a result as Arrow.

    What is registered or made in it is its own, and gone afterwards.
    """
    with _duckdb().cursor() as duck:
        for name, table in tables.items():
            duck.register(name, table)
        with damage_named(*tables.values(), errors=(duckdb.Error,)):
            yield duck


@contextmanager
def spilling_connection(
    tables: Mapping[str, Rows],
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB of its own for whole days of rows: what exceeds 1 GB goes to a temporary folder."""
    with (
        tempfile.TemporaryDirectory(prefix="rivermark-") as folder,
        _opened(temp_directory=folder) as engine,
    ):
        for name, table in tables.items():
            engine.register(name, table)
        with damage_named(*tables.values(), errors=(duckdb.Error,)):
            yield engine


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    """The process's one engine: to open another costs 20 ms of CPU, a cursor of it 0.2.

    One thread: the streams on this machine have the better claim.
    """
    return _opened()


def _opened(**config: str) -> duckdb.DuckDBPyConnection:
    limits: dict[str, Any] = {"threads": 1, "memory_limit": "1GB", **config}
    engine = duckdb.connect(":memory:", config=limits)
    engine.execute("SET GLOBAL TimeZone = 'UTC'")
    return engine


def quoted(column: str) -> str:
    """A column's name as SQL takes any name."""
    return '"' + column.replace('"', '""') + '"'


def spark_quoted(column: str) -> str:
    """A column's name as SQL of Spark takes any name."""
    return "`" + column.replace("`", "``") + "`"
