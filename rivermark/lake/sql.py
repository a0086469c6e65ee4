"""SQL over Delta tables, run by DuckDB in this process. Values are bound, never pasted."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import duckdb

from rivermark.lake.delta import damage_named
from rivermark.lake.query_limits import QueryLimits, query_limits

if TYPE_CHECKING:
    # Arrow's datasets import pandas, which takes a second: not before the first query.
    import pyarrow as pa
    from pyarrow import dataset

    Rows: TypeAlias = dataset.Dataset | pa.Table

PROC: Final = Path("/proc")


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
    """A DuckDB of its own for whole days of rows: what exceeds its memory goes to the disk."""
    with (
        tempfile.TemporaryDirectory(prefix="rivermark-", dir=_spill_folder()) as folder,
        _opened(temp_directory=folder) as engine,
    ):
        for name, table in tables.items():
            engine.register(name, table)
        with damage_named(*tables.values(), errors=(duckdb.Error,)):
            yield engine


def _duckdb() -> duckdb.DuckDBPyConnection:
    return _engine(query_limits())


@lru_cache(maxsize=1)
def _engine(limits: QueryLimits) -> duckdb.DuckDBPyConnection:
    """The process's one engine: to open another costs 20 ms of CPU, a cursor of it 0.2."""
    return _opened(temp_directory=f"{_spill_folder()}/{os.getpid()}")


def _spill_folder() -> str:
    """The folder for what exceeds the memory, never that in which a command was typed.

    That of the system where this one cannot be made. What a process left there that was killed is
    removed.
    """
    folder = Path(query_limits().folder or Path(tempfile.gettempdir(), "rivermark-queries"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return tempfile.gettempdir()
    for left in folder.iterdir():
        if left.name.isdigit() and not Path("/proc", left.name).exists() and PROC.exists():
            shutil.rmtree(left, ignore_errors=True)
    return str(folder)


def _opened(**config: str) -> duckdb.DuckDBPyConnection:
    limits: dict[str, Any] = {"threads": query_limits().threads, "memory_limit": _duckdb_size()}
    engine = duckdb.connect(":memory:", config=limits | config)
    engine.execute("SET GLOBAL TimeZone = 'UTC'")
    return engine


def _duckdb_size() -> str:
    """The memory in DuckDB's words, to which m and g are units of 1000."""
    size = query_limits().memory
    return f"{size[:-1]}{ {'m': 'MiB', 'g': 'GiB'}[size[-1]] }"
