"""DuckDB for whole days of rows: bounded memory, what is more goes to a folder that is removed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from pyarrow import dataset


@contextmanager
def arrow_engine(tables: Mapping[str, dataset.Dataset]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection in which the tables can be asked by name; its zone is UTC."""
    with (
        tempfile.TemporaryDirectory(prefix="rivermark-") as folder,
        duckdb.connect(
            ":memory:", config={"threads": 1, "memory_limit": "1GB", "temp_directory": folder}
        ) as engine,
    ):
        engine.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            engine.register(name, table)
        yield engine
