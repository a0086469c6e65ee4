"""SQL over the tables of a lake by their names, at versions or moments; it can do nothing else.

    SELECT * FROM taxi.trips
    FROM "taxi/trips@3" EXCEPT FROM "taxi/trips@2026-03-01T12:00"

DuckDB runs a query in an engine of its own that can open no file, no network and no extension.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import duckdb

from rivermark.ask.lake_table import LakeTable, no_table, open_version
from rivermark.lake.delta import damage_named
from rivermark.lake.lake import Lake
from rivermark.lake.quoting import quoted
from rivermark.lake.sql import spilling_connection
from rivermark.model.errors import RivermarkError, WrongUse

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

BATCH_ROWS: Final = 16_384
"""Rows of a result that are in memory at once."""
CLOSED: Final = (
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
"""What takes from an engine all that it could reach beside the tables registered in it."""
SYSTEM: Final = ("information_schema", "main", "pg_catalog", "temp")


@dataclass(frozen=True)
class QueryResult:
    """The rows of a query, read as they are asked for.

    `tables` are those that it reads, as `table@version`; `hidden` the columns that were left out,
    as `table.column`.
    """

    batches: pa.RecordBatchReader
    tables: tuple[str, ...]
    hidden: tuple[str, ...]


@contextmanager
def query_result(
    lake: Lake,
    sql: str,
    *,
    at: int | datetime | None = None,
    hidden: Mapping[str, Collection[str]] | None = None,
) -> Iterator[QueryResult]:
    """The rows of one query, while this lasts; tables are as of `at` where they name no version.

    `hidden` are columns by table that are not there for the query.

    Raises:
        WrongUse: The text is no single query.
        UnknownStream: There is no such table.
        RivermarkError: DuckDB cannot run it, with its words.
        TableDamaged: A file of a table is damaged.
    """
    with spilling_connection({}) as engine:
        names = _tables_named(engine, sql)
        tables = {name: _opened(lake, name, at) for name in names}
        left_out: list[str] = []
        for number, (written, table) in enumerate(tables.items()):
            known = table.rows.schema.names
            columns = [c for c in (hidden or {}).get(table.name, ()) if c in known]
            left_out += [f"{table.name}.{column}" for column in columns]
            engine.register(f"_rows_{number}", table.rows)
            _make_view(engine, written, f"_rows_{number}", columns)
        for setting in CLOSED:
            engine.execute(setting)
        rows = [table.rows for table in tables.values()]
        try:
            with damage_named(*rows, errors=(duckdb.Error,)):
                batches = engine.sql(sql).to_arrow_reader(BATCH_ROWS)
                read = tuple(f"{table.name}@{table.version}" for table in tables.values())
                yield QueryResult(batches, read, tuple(left_out))
        except duckdb.Error as error:
            raise _in_words(lake, error, left_out) from error


def _opened(lake: Lake, path: tuple[str, ...], at: int | datetime | None) -> LakeTable:
    written, marked, version = "/".join(path).partition("@")
    name = written.lower()
    table = open_version(lake, name, version if marked else at)
    if len(path) > 2:
        schema, *rest = name.split("/")
        inside = "/".join(rest)
        raise WrongUse(f"table '{name}' is {schema}.{quoted(inside)}, or {quoted(name)}, in SQL")
    return table


def _make_view(
    engine: duckdb.DuckDBPyConnection, path: tuple[str, ...], rows: str, hidden: Collection[str]
) -> None:
    """Give the rows the name that the query has for them."""
    exclude = f"EXCLUDE ({', '.join(map(quoted, hidden))}) " if hidden else ""
    if len(path) > 1:
        engine.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(path[0])}")
    name = ".".join(map(quoted, path))
    engine.execute(f"CREATE VIEW {name} AS SELECT * {exclude}FROM {rows}")


def _tables_named(engine: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[str, ...]]:
    """The names of tables in a query, as it has them; those of its own `WITH` are not of the lake.

    Raises WrongUse for what is not one query.
    """
    try:
        kinds = [each.type for each in engine.extract_statements(sql)]
    except duckdb.Error as error:
        raise WrongUse(f"this is not valid SQL: {one_line(error)}") from None
    if kinds != [duckdb.StatementType.SELECT]:
        raise WrongUse(
            "write one query that only reads, since tables are never written to: begin with "
            "SELECT, FROM, WITH, DESCRIBE or SUMMARIZE, and leave out any ';'"
        )
    ((serialized,),) = engine.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
    tree = json.loads(serialized)
    refs = [node for node in _nodes(tree) if node.get("type") == "BASE_TABLE"]
    named = [tuple(ref["qualified_name"]["path"]) for ref in refs]
    of_lake = [path for path in named if _is_of_lake(path)]
    return list({tuple(part.lower() for part in path): path for path in of_lake}.values())


def _is_of_lake(path: tuple[str, ...]) -> bool:
    return "/" in path[0] if len(path) == 1 else path[0].lower() not in SYSTEM


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
        for each in tree.values():
            yield from _nodes(each)
    elif isinstance(tree, list):
        for each in tree:
            yield from _nodes(each)


def _in_words(lake: Lake, error: duckdb.Error, left_out: list[str]) -> RivermarkError:
    """DuckDB's error as a sentence, with the table or column that was probably meant."""
    text = one_line(error)
    if missing := re.search(r"Table with name (\S+) does not exist", text):
        return no_table(lake, missing[1])
    if isinstance(error, duckdb.PermissionException):
        text += "; a query reads the tables of the lake, and neither files nor the network"
    if isinstance(error, duckdb.BinderException) and left_out:
        text += f" (left out as personal: {', '.join(left_out)}; --personal shows them)"
    return RivermarkError(f"the query cannot be run: {text}")


def one_line(error: Exception) -> str:
    """The message of an error, without the picture of the query that DuckDB puts below."""
    return " ".join(str(error).split("\n\n")[0].split())
