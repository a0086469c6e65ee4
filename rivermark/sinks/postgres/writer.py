"""Writes batches to a table of PostgreSQL, each in one transaction with its row of the ledger."""

from __future__ import annotations

import re
from abc import abstractmethod
from base64 import b64decode
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from io import BytesIO
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import Connection, DataError, IntegrityError
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal
from pyarrow.json import ParseOptions, read_json
from pyspark.sql.types import StringType

from rivermark.connect.postgres import Database, Session
from rivermark.lake.day_predicates import days_of, is_date, ranges
from rivermark.lake.schema import arrow_schema
from rivermark.lake.sql import connection as duckdb_connection
from rivermark.model.errors import CheckpointIncompatible, RivermarkError
from rivermark.model.json_text import json_text
from rivermark.model.rows import BatchRows, Rows, as_rows
from rivermark.model.sink import BatchIdentity, SinkContext, SinkWriter
from rivermark.sinks.delta_upsert import in_memory, is_deletion
from rivermark.sinks.postgres.column_types import is_nested, spelled
from rivermark.sinks.postgres.target import Held, Target, names_of
from rivermark.sinks.python_rows import python_rows
from rivermark.sinks.undelivered import Refused, Undelivered, keyed

NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""The escape in JSON; behind another backslash it is a text that reads like it."""
AT_ONCE: Final = 10_000
"""Rows that are Python objects at a time."""
STAGED: Final = Identifier("pg_temp", "rivermark_staged")
LATEST: Final = Identifier("pg_temp", "rivermark_latest")


Refusal = tuple[bytes, str]
"""A row as JSON, and why it was not taken."""


class _KeptAway(Exception):
    """A row that was written without an error is not there."""


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


class Writer(SinkWriter):
    """Writes what `_put` makes of a batch's rows."""

    def __init__(
        self, target: Target, database: Database, context: SinkContext, described: str
    ) -> None:
        self._target = target
        self._undelivered = Undelivered(context, described)
        self._origin = context.origin
        self._schema = arrow_schema(context.table.schema)
        self._session = Session(database, f"rivermark {context.origin.stream}")
        self._session.run(f"{self._subject} open its table", target.prepare)

    @property
    def _subject(self) -> str:
        return f"stream '{self._origin.stream}' cannot"

    @abstractmethod
    def _put(self, connection: Connection, rows: pa.Table, *, overrule: bool) -> None:
        """Put rows into the table; with `overrule` they count before others of their version."""

    def last(self) -> BatchIdentity | None:
        """The newest batch, as the ledger says it."""
        return self._last

    @cached_property
    def _last(self) -> BatchIdentity | None:
        def read(connection: Connection) -> tuple[BatchIdentity | None, bool]:
            newest = self._newest(self._target.held(connection, self._origin))
            is_first = newest is None or newest.batch < 0
            return newest, not is_first and self._target.is_empty(connection)

        newest, is_empty = self._session.run(f"{self._subject} read its ledger", read)
        # A table of latest rows may be empty because every key was deleted.
        self.emptied = newest is not None and is_empty and bool(self._target.keys)
        if newest is not None and is_empty and not self._target.keys:
            raise CheckpointIncompatible(
                f"stream '{self._origin.stream}': table {self._target.name} in PostgreSQL is "
                f"empty, and batch {newest.batch} was written to it: it was truncated, or made "
                "again. Put its rows back, or start over on purpose, which writes every row again: "
                f"rivermark reset {self._origin.stream}"
            )
        return newest

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
        batch_rows = as_rows(rows)
        self._session.run(
            f"{self._subject} write batch {identity.batch}",
            lambda connection: self._write(connection, batch_rows, identity),
        )
        self._last = identity
        return batch_rows.count()

    def _write(self, connection: Connection, rows: BatchRows, batch: BatchIdentity) -> None:
        newest = self._newest(self._target.lock(connection, self._origin))
        if newest is not None and newest.batch >= batch.batch:
            return  # Committed, and the answer was lost; or by a run that took the stream over.
        refused = self._put_all(connection, rows, overrule=False)
        self._target.note(connection, self._origin, batch.batch)
        self._origin.check()
        # Before the transaction ends: behind it the batch would not come again.
        self._undelivered.write(self._kept(refused, batch), batch)

    def _put_all(self, connection: Connection, rows: BatchRows, *, overrule: bool) -> list[Refusal]:
        """Put the rows piece by piece; returns those that the database does not take."""
        refused = []
        for piece in rows.pieces(self._schema.names):
            table, known = self._taken(piece.cast(self._schema))
            refused += [*known, *self._put_each(connection, table, overrule=overrule)]
        return refused

    def _kept(self, refused: Sequence[Refusal], batch: BatchIdentity) -> list[Refused]:
        bodies = keyed(batch, (body for body, _ in refused))
        pairs = zip(bodies, refused, strict=True)
        return [Refused(body, key, reason) for (body, key), (_, reason) in pairs]

    def _put_each(self, connection: Connection, rows: pa.Table, *, overrule: bool) -> list[Refusal]:
        """Put the rows, but those that the database refuses, which are found by halving them."""
        if not rows.num_rows:
            return []
        connection.execute("SAVEPOINT rivermark_rows")
        try:
            self._put(connection, rows, overrule=overrule)
        except (DataError, IntegrityError, _KeptAway) as error:
            connection.execute("ROLLBACK TO SAVEPOINT rivermark_rows")
            if rows.num_rows == 1:
                return [(body_of(rows), self._reason(error))]
            half = rows.num_rows // 2
            parts = (rows.slice(0, half), rows.slice(half))
            return [
                refusal
                for part in parts
                for refusal in self._put_each(connection, part, overrule=overrule)
            ]
        connection.execute("RELEASE SAVEPOINT rivermark_rows")
        return []

    def _reason(self, error: Exception) -> str:
        if not isinstance(error, DataError | IntegrityError):
            return f"table {self._target.name}: {error}"
        said = error.diag.message_primary or str(error).strip()
        named = re.search(r", column ([^:]+):", error.diag.context or "")
        column = error.diag.column_name or (named[1] if named else None)
        where = f", column '{column}'" if column else ""
        return f"table {self._target.name}{where}: {said}"

    def _taken(self, table: pa.Table) -> tuple[pa.Table, list[Refusal]]:
        """The rows without those that no table can take, and these with their reasons."""
        reasons: dict[int, str] = {}
        for name in self._target.keys:
            for place in pc.indices_nonzero(pc.is_null(table[name])).to_pylist():
                reasons.setdefault(
                    place, f"column '{name}' is a key and null: give it a value in the build"
                )
        schema = self._target.output.schema
        for field in self._schema:
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
            (body_of(table.slice(place, 1)), f"table {self._target.name}: {reason}")
            for place, reason in sorted(reasons.items())
        ]
        return kept, refused

    def _copy(self, connection: Connection, into: Identifier, rows: pa.Table) -> int:
        """Copy the rows into a table; returns how many of them it took."""
        command = SQL("COPY {} ({}) FROM STDIN").format(into, names_of(rows.column_names))
        with connection.cursor() as cursor:
            with cursor.copy(command) as copy:
                for row in self._values(rows):
                    copy.write_row(row)
            return cursor.rowcount

    def _values(self, rows: pa.Table) -> Iterator[list[Any]]:
        schema = self._target.output.schema
        nested = [name for name in self._schema.names if is_nested(schema[name].dataType)]
        for start in range(0, rows.num_rows, AT_ONCE):
            part = rows.slice(start, AT_ONCE)
            within = python_rows(part.select(nested))
            for row, texts in zip(python_rows(part.drop(nested), spelled), within, strict=True):
                for name, value in texts.items():
                    row[name] = None if value is None else json_text(value).decode()
                yield [row[name] for name in rows.column_names]

    def replace(
        self,
        rows: Rows,
        days: Collection[date],
        replacement: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> int:
        """Replace days in one transaction."""
        batch_rows = as_rows(rows)
        named = BatchIdentity(f"{self._origin.stream} {replacement}", self._origin.generation, 0)

        def act(connection: Connection) -> None:
            self._target.held(connection, self._origin)
            self._remove(connection, days)
            refused = self._put_all(connection, batch_rows, overrule=True)
            self._undelivered.add(self._kept(refused, named), {"replacement": replacement})

        self._session.run(f"{self._subject} replace days", act)
        return batch_rows.count()

    def resend(self, waiting: Sequence[Mapping[str, Any]]) -> list[str | None]:
        """Put rows that were refused again, each in a transaction that notes its key."""
        reasons = [
            self._session.run(f"{self._subject} send again", self._again(w)) for w in waiting
        ]
        pairs = zip(waiting, reasons, strict=True)
        self._undelivered.settle([row["idempotency_key"] for row, why in pairs if why is None])
        return reasons

    def _again(self, waiting: Mapping[str, Any]) -> Callable[[Connection], str | None]:
        def act(connection: Connection) -> str | None:
            try:
                rows, refused = self._taken(rows_of_body(waiting["body"].encode(), self._schema))
            except pa.ArrowException as error:
                return f"its JSON cannot be read again: {error}"
            if not refused and self._target.note_resent(connection, waiting["idempotency_key"]):
                refused = self._put_each(connection, rows, overrule=False)
                if refused:
                    self._target.forget_resent(connection, waiting["idempotency_key"])
            return refused[0][1] if refused else None

        return act

    @abstractmethod
    def _remove(self, connection: Connection, days: Collection[date]) -> None:
        """Remove the rows of days in whose place others come."""

    def close(self) -> None:
        """Close the connection."""
        self._session.close()
        self._undelivered.close()


class Appender(Writer):
    """Appends the rows; those of a recompute come in place of their days' rows."""

    def _put(self, connection: Connection, rows: pa.Table, *, overrule: bool) -> None:
        table = self._target.table
        if self._target.is_staged:
            columns = names_of(rows.column_names)
            stage = "CREATE TEMP TABLE rivermark_staged ON COMMIT DROP AS SELECT {} FROM {} LIMIT 0"
            connection.execute(SQL(stage).format(columns, table))
            self._copy(connection, STAGED, rows)
            put = SQL("INSERT INTO {} ({}) SELECT {} FROM {}")
            taken = connection.execute(put.format(table, columns, columns, STAGED)).rowcount
            connection.execute(SQL("DROP TABLE {}").format(STAGED))
        else:
            taken = self._copy(connection, table, rows)
        if taken < rows.num_rows:
            raise _KeptAway("a trigger or rule of the table kept the row away")

    def _remove(self, connection: Connection, days: Collection[date]) -> None:
        daily = days_of(self._target.output)
        is_day = is_date(self._target.output)
        for first, last in ranges(days):
            begin, end = (first, last) if is_day else daily.bounds(first, last)
            delete = SQL("DELETE FROM {table} WHERE {day} >= {begin} AND {day} {before} {end}")
            # As literals: with parameters a % in the column's name would be one too.
            connection.execute(
                delete.format(
                    table=self._target.table,
                    day=Identifier(daily.column),
                    before=SQL("<=" if is_day else "<"),
                    begin=Literal(begin),
                    end=Literal(end),
                )
            )


class Upserter(Writer):
    """Keeps the latest row of each key.

    Which row that is follows from the rows alone: the one with the largest version, a deletion
    before a row of the same version, then the one with the greater values, compared as texts.
    """

    def _put(self, connection: Connection, rows: pa.Table, *, overrule: bool) -> None:
        marked = self._marked(rows)
        if not marked.num_rows:
            return
        columns = names_of(marked.column_names)
        self._run(
            connection,
            "CREATE TEMP TABLE rivermark_staged ON COMMIT DROP AS "
            "SELECT *, false AS _deleted FROM {table} WITH NO DATA",
        )
        self._copy(connection, STAGED, marked)
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
        for table in (STAGED, LATEST):
            connection.execute(SQL("DROP TABLE {}").format(table))

    def _marked(self, rows: pa.Table) -> pa.Table:
        """The rows with a mark on those that delete their key."""
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
        """True if rows `l` and `t` have one key."""
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
        """Returns True if a row counts before another; of the same version where `tie` holds."""
        left, right = self._version(row), self._version(other)
        return SQL(
            "({left} > {right} OR {right} IS NULL AND {left} IS NOT NULL "
            "OR {left} IS NOT DISTINCT FROM {right} AND {tie})"
        ).format(left=left, right=right, tie=tie)
