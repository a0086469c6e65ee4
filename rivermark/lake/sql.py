"""SQL over Delta tables, run by DuckDB in this process. Values are bound, never pasted."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa

from rivermark.lake.integrity.log_entry import first_line, table_in
from rivermark.model.errors import TableDamaged

if TYPE_CHECKING:
    # Arrow's datasets import pandas, which takes a second: not before the first query.
    from pyarrow import dataset


def query(
    sql: str,
    tables: Mapping[str, dataset.Dataset],
    values: Sequence[object] | Mapping[str, object] = (),
) -> list[dict[str, Any]]:
    """The rows of the result."""
    with connection(tables) as duck:
        result = duck.execute(sql, values or None)
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


@contextmanager
def connection(tables: Mapping[str, dataset.Dataset]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB connection with the tables, for several queries in a row or a result as Arrow.

    What is registered or made in it is its own, and gone afterwards.
    """
    with _duckdb().cursor() as duck:
        for name, table in tables.items():
            duck.register(name, table)
        with damage_named(*tables.values()):
            yield duck


@contextmanager
def spilling_connection(
    tables: Mapping[str, dataset.Dataset],
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB of its own for whole days of rows: what exceeds 1 GB goes to a temporary folder."""
    with (
        tempfile.TemporaryDirectory(prefix="rivermark-") as folder,
        _opened(temp_directory=folder) as engine,
    ):
        for name, table in tables.items():
            engine.register(name, table)
        with damage_named(*tables.values()):
            yield engine


@contextmanager
def damage_named(*tables: dataset.Dataset) -> Iterator[None]:
    """Let a read that fails by a damaged data file say which: Arrow and DuckDB do not.

    Raises TableDamaged for the first file of the tables that cannot be read through.
    """
    try:
        yield
    except (OSError, pa.ArrowException, duckdb.Error) as error:
        for table in tables:
            for damage in unreadable_files(table):
                raise damage from error
        raise


def unreadable_files(table: dataset.Dataset) -> Iterator[TableDamaged]:
    """The data files of a dataset that cannot be read through, each with the reason."""
    for fragment in table.get_fragments():
        path = getattr(fragment, "path", None)
        if path is None:
            continue  # Rows of this process.
        folder = getattr(getattr(fragment.filesystem, "handler", None), "table_path", "")
        named = (table_in(folder), f"{folder}/{unquote(path)}")
        try:
            for _ in fragment.to_batches(batch_readahead=1):
                pass
        except FileNotFoundError:
            yield TableDamaged.of(*named, "is missing")
        except (OSError, pa.ArrowException) as error:
            yield TableDamaged.of(*named, f"cannot be read ({first_line(error)})")


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
