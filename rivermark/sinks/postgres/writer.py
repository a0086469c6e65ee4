"""Writes batches to a table of PostgreSQL, each in one transaction with its row of the ledger."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import Connection
from psycopg.sql import SQL, Composable, Composed, Identifier
from pyspark.sql.types import StringType

from rivermark.lake.day_predicates import days_of, is_date, ranges
from rivermark.lake.schema import arrow_schema
from rivermark.lake.sql import connection as duckdb_connection
from rivermark.model.errors import RivermarkError
from rivermark.model.json_text import json_text
from rivermark.model.postgres import Database, Session
from rivermark.model.rows import BatchRows, Rows, as_rows
from rivermark.model.sink import BatchIdentity, SinkContext, SinkWriter
from rivermark.sinks.delta_upsert import check_keys, in_memory, is_deletion
from rivermark.sinks.postgres.column_types import is_nested, spelled
from rivermark.sinks.postgres.target import Held, Target, names_of
from rivermark.sinks.python_rows import python_rows

NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""The escape in JSON; behind another backslash it is a text that reads like it."""
AT_ONCE: Final = 10_000
"""Rows that are Python objects at a time."""
STAGED: Final = Identifier("pg_temp", "rivermark_staged")
LATEST: Final = Identifier("pg_temp", "rivermark_latest")


class Writer(SinkWriter):
    """Writes what `_put` makes of a batch's rows."""

    def __init__(self, target: Target, database: Database, context: SinkContext) -> None:
        self._target = target
        self._origin = context.origin
        self._schema = arrow_schema(context.table.schema)
        self._session = Session(database, f"rivermark {context.origin.stream}")
        self._session.run(f"{self._subject} open its table", target.prepare)

    @property
    def _subject(self) -> str:
        return f"stream '{self._origin.stream}' cannot"

    @abstractmethod
    def _put(self, connection: Connection, rows: BatchRows, *, overrule: bool) -> None:
        """Put rows into the table; with `overrule` they count before others of their version."""

    def last(self) -> BatchIdentity | None:
        """The newest batch, as the ledger says it."""
        return self._last

    @cached_property
    def _last(self) -> BatchIdentity | None:
        return self._session.run(
            f"{self._subject} read its ledger",
            lambda connection: self._newest(self._target.held(connection, self._origin)),
        )

    def _newest(self, held: Held | None) -> BatchIdentity | None:
        if held is None or held.generation < self._origin.generation:
            return None
        if (held.generation, held.since) != (self._origin.generation, self._origin.since):
            raise RivermarkError(self._foreign(held))
        return self._origin.batch(held.batch)

    def _foreign(self, held: Held) -> str:
        return (
            f"table {self._target.name} in PostgreSQL holds batch {held.batch} of a checkpoint of "
            f"stream '{held.stream}' that began at {held.since:%Y-%m-%d %H:%M:%S} UTC, and this "
            f"one began at {self._origin.since:%Y-%m-%d %H:%M:%S}: each deployment needs a table "
            "of its own"
        )

    def write(
        self, rows: Rows, identity: BatchIdentity, metadata: Mapping[str, Any] | None = None
    ) -> int:
        """Write a batch in one transaction, unless the table holds it."""
        if self._last is not None and self._last.batch >= identity.batch:
            return 0
        given = as_rows(rows)
        self._session.run(
            f"{self._subject} write batch {identity.batch}",
            lambda connection: self._write(connection, given, identity),
        )
        self._last = identity
        return given.count()

    def _write(self, connection: Connection, rows: BatchRows, identity: BatchIdentity) -> None:
        newest = self._newest(self._target.lock(connection, self._origin))
        if newest is not None and newest.batch >= identity.batch:
            return  # Committed, and the answer was lost; or by a run that took the stream over.
        self._put(connection, rows, overrule=False)
        self._target.note(connection, self._origin, identity.batch)
        self._origin.check()

    def _pieces(self, rows: BatchRows) -> Iterator[pa.Table]:
        """The rows with their declared types; raises RivermarkError where a text holds a NUL."""
        for piece in rows.pieces(self._schema.names):
            yield self._checked(piece.cast(self._schema))

    def _checked(self, table: pa.Table) -> pa.Table:
        for field in self._schema:
            if not pa.types.is_string(field.type):
                continue
            broken = pc.match_substring(table[field.name], "\0")
            if pc.any(broken).as_py():
                raise RivermarkError(
                    f"{self._subject} write to table {self._target.name}: column '{field.name}' "
                    f"holds a NUL character in {pc.sum(broken).as_py()} rows, which no text of "
                    "PostgreSQL can. Remove it in the stream's build: "
                    f"F.translate('{field.name}', '\\0', '')"
                )
        return table

    def _copy(self, connection: Connection, into: Identifier, rows: pa.Table) -> None:
        command = SQL("COPY {} ({}) FROM STDIN").format(into, names_of(rows.column_names))
        with connection.cursor() as cursor, cursor.copy(command) as copy:
            for row in self._values(rows):
                copy.write_row(row)

    def _values(self, rows: pa.Table) -> Iterator[list[Any]]:
        schema = self._target.output.schema
        nested = [name for name in self._schema.names if is_nested(schema[name].dataType)]
        for start in range(0, rows.num_rows, AT_ONCE):
            part = rows.slice(start, AT_ONCE)
            within = python_rows(part.select(nested))
            for row, texts in zip(python_rows(part.drop(nested), spelled), within, strict=True):
                for name, value in texts.items():
                    row[name] = None if value is None else self._json(name, value)
                yield [row[name] for name in rows.column_names]

    def _json(self, name: str, value: Any) -> str:
        """A nested value as JSON; raises RivermarkError where a text in it holds a NUL."""
        text = json_text(value).decode()
        if NUL.search(text):
            raise RivermarkError(
                f"{self._subject} write to table {self._target.name}: a text within column "
                f"'{name}' holds a NUL character, which no text of PostgreSQL can. Remove it in "
                "the stream's build"
            )
        return text

    def replace(
        self,
        rows: Rows,
        days: Collection[date],
        replacement: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> int:
        """Replace days in one transaction."""
        given = as_rows(rows)
        self._session.run(
            f"{self._subject} replace days",
            lambda connection: self._replace(connection, given, days),
        )
        return given.count()

    def _replace(self, connection: Connection, rows: BatchRows, days: Collection[date]) -> None:
        self._target.held(connection, self._origin)
        self._remove(connection, days)
        self._put(connection, rows, overrule=True)

    @abstractmethod
    def _remove(self, connection: Connection, days: Collection[date]) -> None:
        """Remove the rows of days in whose place others come."""

    def close(self) -> None:
        """Close the connection."""
        self._session.close()


class Appender(Writer):
    """Appends the rows; those of a recompute come in place of their days' rows."""

    def _put(self, connection: Connection, rows: BatchRows, *, overrule: bool) -> None:
        for piece in self._pieces(rows):
            self._copy(connection, self._target.table, piece)

    def _remove(self, connection: Connection, days: Collection[date]) -> None:
        daily = days_of(self._target.output)
        is_day = is_date(self._target.output)
        delete = SQL("DELETE FROM {table} WHERE {day} >= %s AND {day} {before} %s").format(
            table=self._target.table,
            day=Identifier(daily.column),
            before=SQL("<=" if is_day else "<"),
        )
        for first, last in ranges(days):
            connection.execute(delete, (first, last) if is_day else daily.bounds(first, last))


class Upserter(Writer):
    """Keeps the latest row of each key.

    Which row that is follows from the rows alone: the one with the largest version, a deletion
    before a row of the same version, then the one with the greater values, compared as texts.
    """

    def _put(self, connection: Connection, rows: BatchRows, *, overrule: bool) -> None:
        if not rows.count():
            return
        columns = names_of([*self._schema.names, "_deleted"])
        self._run(
            connection,
            "CREATE TEMP TABLE rivermark_staged ON COMMIT DROP AS "
            "SELECT *, false AS _deleted FROM {table} WITH NO DATA",
        )
        for piece in self._pieces(rows):
            self._copy(connection, STAGED, self._marked(piece))
        connection.execute(
            SQL(
                "CREATE TEMP TABLE rivermark_latest ON COMMIT DROP AS "
                "SELECT DISTINCT ON ({keys}) {columns} FROM {staged} s "
                "ORDER BY {keys}, {version} DESC NULLS LAST, _deleted DESC, {values} DESC"
            ).format(
                keys=self._keys,
                columns=columns,
                staged=STAGED,
                version=self._version("s"),
                values=self._texts("s"),
            )
        )
        if self._target.tombstones is not None:
            self._delete(connection)
        self._insert(connection, overrule=overrule)

    def _marked(self, rows: pa.Table) -> pa.Table:
        """The rows with a mark on those that delete their key."""
        check_keys(rows, self._target.output, self._target.keys)
        # The condition is part of the declaration.
        sql = f"SELECT {is_deletion(self._target.deleted)} AS _deleted FROM new"  # noqa: S608
        with duckdb_connection({"new": in_memory(rows)}) as duckdb:
            marks: pa.Table = duckdb.sql(sql).to_arrow_table()
        return rows.append_column("_deleted", marks["_deleted"])

    def _delete(self, connection: Connection) -> None:
        """Note the deletions, and delete rows that are not newer."""
        self._run(
            connection,
            "INSERT INTO {tombstones} AS t ({tombstone}) SELECT {tombstone} FROM {latest} "
            "WHERE _deleted ON CONFLICT ({keys}) DO UPDATE SET {version} = EXCLUDED.{version} "
            "WHERE {newer}",
            newer=self._newer("excluded", "t", SQL("false")),
        )
        self._run(
            connection,
            "DELETE FROM {table} t USING {latest} l WHERE l._deleted AND {same} AND {newer}",
            newer=self._newer("l", "t", SQL("true")),
        )

    def _insert(self, connection: Connection, *, overrule: bool) -> None:
        """Put the rows that are newer in place of what the table holds of their keys."""
        buried: Composable = SQL("false")
        tie: Composable = SQL("true")
        if not overrule:
            tie = SQL("{} > {}").format(self._texts("excluded"), self._texts("t"))
        if self._target.tombstones is not None:
            buried = SQL("EXISTS (SELECT FROM {} t WHERE {} AND NOT {})").format(
                self._target.tombstones,
                self._same,
                self._newer("l", "t", SQL("true" if overrule else "false")),
            )
        self._run(
            connection,
            "INSERT INTO {table} AS t ({columns}) SELECT {columns} FROM {latest} l "
            "WHERE NOT l._deleted AND NOT {buried} "
            "ON CONFLICT ({keys}) DO UPDATE SET {updates} WHERE {newer}",
            buried=buried,
            newer=self._newer("excluded", "t", tie),
            updates=SQL(", ").join(
                SQL("{} = EXCLUDED.{}").format(Identifier(name), Identifier(name))
                for name in self._target.columns
            ),
        )

    def _run(self, connection: Connection, template: str, **parts: Composable) -> None:
        target = self._target
        tombstone = dict.fromkeys((*target.keys, target.version or ""))
        connection.execute(
            SQL(template).format(
                table=target.table,
                tombstones=target.tombstones or SQL(""),
                tombstone=names_of([*tombstone]),
                latest=LATEST,
                columns=names_of(target.columns),
                keys=self._keys,
                same=self._same,
                version=Identifier(target.version or ""),
                **parts,
            )
        )

    def _remove(self, connection: Connection, days: Collection[date]) -> None:
        """Rows of the days that the recompute no longer returns stay: a key is of no day."""

    @cached_property
    def _keys(self) -> Composed:
        return names_of(self._target.keys)

    @cached_property
    def _same(self) -> Composed:
        """Whether rows `l` and `t` have one key."""
        return SQL(" AND ").join(
            SQL("l.{} = t.{}").format(Identifier(key), Identifier(key)) for key in self._target.keys
        )

    def _version(self, row: str) -> Composed:
        name = self._target.version or ""
        is_text = isinstance(self._target.output.schema[name].dataType, StringType)
        # Bytes count, as everywhere else, and not a language's order.
        return SQL('{}.{} COLLATE "C"' if is_text else "{}.{}").format(
            Identifier(row), Identifier(name)
        )

    def _texts(self, row: str) -> Composed:
        """The values of a row as texts; arrays of them have an order that has no unknowns."""
        texts = (
            SQL("{}.{}::text").format(Identifier(row), Identifier(c)) for c in self._target.columns
        )
        return SQL('ARRAY[{}] COLLATE "C"').format(SQL(", ").join(texts))

    def _newer(self, row: str, other: str, tie: Composable) -> Composed:
        """Whether a row counts before another; of the same version where `tie` holds."""
        left, right = self._version(row), self._version(other)
        return SQL(
            "({left} > {right} OR {right} IS NULL AND {left} IS NOT NULL "
            "OR {left} IS NOT DISTINCT FROM {right} AND {tie})"
        ).format(left=left, right=right, tie=tie)
