"""Rows of an output as COPY takes them into a table of PostgreSQL; in the driver and in tasks."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import Connection
from psycopg.sql import SQL, Identifier
from pyarrow.json import ParseOptions, read_json

from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.sql import connection as duckdb_connection
from rivermark.model.json_text import json_text
from rivermark.sinks.latest_row import is_deletion
from rivermark.sinks.postgres.column_types import is_nested, spelled
from rivermark.sinks.postgres.target import Target, names_of
from rivermark.sinks.python_rows import python_rows
from rivermark.sinks.upsert_writer import in_memory

NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""The escape in JSON; behind another backslash it is a text that reads like it."""
AT_ONCE: Final = 10_000
"""Rows that are Python objects at a time."""

Refusal = tuple[bytes, str]
"""A row as JSON, and why it was not taken."""


def body_of(row: pa.Table) -> bytes:
    """A single row as a JSON object."""
    return json_text(python_rows(row)[0])


def rows_of_body(body: bytes, schema: pa.Schema) -> pa.Table:
    """The row of a JSON object; raises ArrowException where a value has no such form."""
    # Arrow reads dates in JSON as numbers, and bytes as they stand there.
    as_text = [f.with_type(pa.string()) if pa.types.is_date(f.type) else f for f in schema]
    options = ParseOptions(explicit_schema=pa.schema(as_text), unexpected_field_behavior="ignore")
    row = read_json(BytesIO(body), parse_options=options)
    for place, field in enumerate(schema):
        if pa.types.is_binary(field.type):
            texts = row[field.name].to_pylist()
            values = [None if text is None else b64decode(text) for text in texts]
            row = row.set_column(place, field, pa.array(values, field.type))
    return row.select(schema.names).cast(schema)


def _with_nul(nested: pa.Table) -> list[int]:
    """The rows of a nested column of which a text holds a NUL."""
    texts = (json_text([*row.values()]).decode() for row in python_rows(nested))
    return [place for place, text in enumerate(texts) if NUL.search(text)]


@dataclass(frozen=True)
class Copying:
    """Rows of a target on their way into one of its tables. It may be pickled."""

    target: Target

    @cached_property
    def schema(self) -> pa.Schema:
        """The declared columns."""
        return arrow_schema(self.target.output.schema)

    def taken(self, table: pa.Table) -> tuple[pa.Table, list[Refusal]]:
        """The rows without those that no table can take, and these with their reasons."""
        table = table.select(self.schema.names).cast(self.schema)
        reasons: dict[int, str] = {}
        for name in self.target.keys:
            for place in pc.indices_nonzero(pc.is_null(table[name])).to_pylist():
                reasons.setdefault(
                    place, f"column '{name}' is a key and null: give it a value in the build"
                )
        schema = self.target.output.schema
        for field in self.schema:
            if pa.types.is_string(field.type):
                broken = pc.indices_nonzero(pc.match_substring(table[field.name], "\0")).to_pylist()
            elif is_nested(schema[field.name].dataType):
                broken = _with_nul(table.select([field.name]))
            else:
                continue
            for place in broken:
                reasons.setdefault(
                    place,
                    f"column '{field.name}' holds a NUL character, which no text of PostgreSQL "
                    f"can: remove it in the build, F.translate('{field.name}', '\\0', '')",
                )
        if not reasons:
            return table, []
        places = pa.array(range(table.num_rows))
        kept = table.filter(pc.invert(pc.is_in(places, pa.array(sorted(reasons), pa.int64()))))
        refused = [
            (body_of(table.slice(place, 1)), f"table {self.target.name}: {reason}")
            for place, reason in sorted(reasons.items())
        ]
        return kept, refused

    def marked(self, rows: pa.Table) -> pa.Table:
        """The rows, where the latest of each key counts with a mark on those that delete theirs."""
        if not self.target.keys:
            return rows
        # The condition is part of the declaration.
        sql = f"SELECT {is_deletion(self.target.deleted)} AS _deleted FROM new"  # noqa: S608
        with duckdb_connection({"new": in_memory(rows)}) as duckdb:
            marks: pa.Table = duckdb.sql(sql).to_arrow_table()
        return rows.append_column("_deleted", marks["_deleted"])

    def copy(self, connection: Connection, into: Identifier, rows: pa.Table) -> int:
        """Copy the rows into a table; returns how many of them it took."""
        command = SQL("COPY {} ({}) FROM STDIN").format(into, names_of(rows.column_names))
        with connection.cursor() as cursor:
            with cursor.copy(command) as copy:
                for row in self._values(rows):
                    copy.write_row(row)
            return cursor.rowcount

    def _values(self, rows: pa.Table) -> Iterator[list[Any]]:
        schema = self.target.output.schema
        nested = [name for name in self.schema.names if is_nested(schema[name].dataType)]
        for start in range(0, rows.num_rows, AT_ONCE):
            part = rows.slice(start, AT_ONCE)
            within = python_rows(part.select(nested))
            for row, texts in zip(python_rows(part.drop(nested), spelled), within, strict=True):
                for name, value in texts.items():
                    row[name] = None if value is None else json_text(value).decode()
                yield [row[name] for name in rows.column_names]
