"""`rivermark sql`: a query over the tables of the lake, and a DuckDB file with a view of each."""

from __future__ import annotations

import json
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rivermark.ask.duckdb_file import write_views
from rivermark.ask.result_files import csv_rows, write_rows
from rivermark.ask.sql import QueryResult, query_result
from rivermark.backfill.as_of import parse_version
from rivermark.cli.arguments import Home, Json, Personal
from rivermark.cli.console import as_json as in_json
from rivermark.cli.console import cell, err, grid, number, out, plain, print_json
from rivermark.cli.deployment import settings_for, topology
from rivermark.model.errors import WrongUse

if TYPE_CHECKING:
    import pyarrow as pa

NUMBERS: Final = ("int", "uint", "float", "double", "decimal")
"""Beginnings of the names of Arrow's types of numbers."""


def sql(
    query: Annotated[
        str | None, typer.Argument(metavar="[QUERY]", help="SELECT ..., in DuckDB's SQL.")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="V|TIME", help="Read tables as they were: at a version or a moment."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows to show.")] = 100,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all rows as CSV.")] = False,
    to: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write all rows: .csv, .jsonl or .parquet."),
    ] = None,
    views: Annotated[
        Path | None,
        typer.Option(
            "--views", metavar="FILE", help="Write a DuckDB file with a view of each table."
        ),
    ] = None,
    personal: Personal = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Query the tables of the lake in SQL, as they are or as they were; nothing is written.

    A table is `taxi.trips` or `"taxi/trips"`, and `"taxi/trips@3"` or
    `"taxi/trips@2026-03-01T12:00"` at a version or a moment. The query can open neither files nor
    the network. --views writes a file for other tools: docs/how-to/ask-tables.md.

    JSON:
        tables (as table@version), hidden (columns left out as personal), columns, rows (one object
        a row); with --out: file, rows_written, tables, hidden; with --views: file, views, left_out
        (table, reason)

    Examples:
        rivermark sql "SELECT * FROM taxi.hourly_winners ORDER BY tips DESC"
        rivermark sql 'FROM "taxi/trips@3" EXCEPT FROM taxi.trips' --csv
        rivermark sql "FROM taxi.trips" --out trips.parquet
        rivermark sql --views lake.duckdb
    """
    if (query is None) == (views is None):
        raise WrongUse("give a query, or --views FILE; `rivermark sql --help` has examples")
    if sum((as_csv, as_json, to is not None and not as_json)) > 1:
        raise WrongUse("--csv prints all rows and --out writes them to a file: give one of the two")
    lake, declared = settings_for(home).lake(), topology()
    tables = [t for stream in declared.streams for t in stream.tables]
    hidden = {} if personal else {t.name: t.personal for t in tables if t.personal}
    if views is not None:
        with err().status("Looking at tables"):
            written = write_views(lake, views, hidden)
        print_views(views, *written, as_json=as_json)
        return
    began = time.monotonic()
    with query_result(
        lake, query or "", at=parse_version(at) if at else None, hidden=hidden
    ) as result:
        if to is not None:
            with err().status(f"Writing {to}"):
                rows = write_rows(to, result.batches, in_json)
            if as_json:
                of_file = {"file": to, "rows_written": rows}
                print_json({**of_file, "tables": result.tables, "hidden": result.hidden})
                return
            out().print(plain(f"{number(rows)} rows in {to}, {time.monotonic() - began:.1f} s"))
        elif as_csv:
            with _beside("Asking"):
                csv_rows(sys.stdout.buffer, result.batches, in_json)
        elif as_json:
            with _beside("Asking"):
                print_document(result)
            return
        else:
            print_first(result.batches, limit)
        console = err() if as_csv else out()
        if result.tables:
            console.print(plain(f"of {', '.join(result.tables)}"))
        if result.hidden:
            console.print(plain(f"left out as personal: {', '.join(result.hidden)} (--personal)"))


def print_first(batches: pa.RecordBatchReader, limit: int) -> None:
    """The first rows as a table on the console, and whether there are more."""
    rows: list[list[object]] = []
    with err().status("Asking"):
        for batch in batches:
            columns = [column.to_pylist() for column in batch.columns]
            rows += [list(row) for row in zip(*columns, strict=True)]
            if len(rows) > limit:
                break
    names = batches.schema.names
    numeric = {f.name for f in batches.schema if str(f.type).startswith(NUMBERS)}
    drawn = grid(None, names, right=numeric)
    for row in rows[:limit]:
        drawn.add_row(*map(cell, row))
    out().print(drawn)
    if len(rows) > limit:
        out().print(plain(f"the first {number(limit)} rows; all: --csv, or --out FILE"))
    else:
        out().print(plain(f"{number(len(rows))} rows"))


def _beside(doing: str) -> AbstractContextManager[object]:
    """Progress beside rows that are written as they are read, unless both were one terminal's."""
    return nullcontext() if sys.stdout.isatty() else err().status(doing)


def print_document(result: QueryResult) -> None:
    """One JSON document, whose rows are written as they are read. Raises WrongUse."""
    names = result.batches.schema.names
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise WrongUse(f"two columns are named {twice[0]!r}: rename one of them with AS")
    head = {"tables": result.tables, "hidden": result.hidden, "columns": names}
    sys.stdout.write(json.dumps(in_json(head))[:-1] + ', "rows": [')
    between = "\n"
    for batch in result.batches:
        for row in batch.to_pylist():
            text = json.dumps(in_json(row), allow_nan=False).replace("\x7f", "\\u007f")
            sys.stdout.write(between + text)
            between = ",\n"
    sys.stdout.write("\n]}\n")


def print_views(file: Path, views: list[str], left_out: dict[str, str], *, as_json: bool) -> None:
    """The tables of a file of views, and why others are left out."""
    if as_json:
        others = [{"table": name, "reason": reason} for name, reason in left_out.items()]
        print_json({"file": file, "views": views, "left_out": others})
        return
    out().print(plain(f"{number(len(views))} views in {file}"))
    for reason in dict.fromkeys(left_out.values()):
        names = [name for name, why in left_out.items() if why == reason]
        out().print(plain(f"left out ({reason}): {', '.join(names)}"))
