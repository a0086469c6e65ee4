"""The latest row of each key, kept in a table of PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from functools import cached_property
from typing import Final

import pyarrow as pa
from psycopg import Connection
from psycopg.sql import SQL, Composable, Composed, Identifier
from pyspark.sql.types import StringType

from rivermark.sinks.postgres.target import names_of
from rivermark.sinks.postgres.writer import STAGED, Writer

LATEST: Final = Identifier("pg_temp", "rivermark_latest")


class Upserter(Writer):
    """Keeps the latest row of each key.

    Which row that is follows from the rows alone: the one with the largest version, a deletion
    before a row of the same version, then the one with the greater values, compared as texts.
    """

    def _put(self, connection: Connection, rows: pa.Table, *, overrule: bool) -> None:
        if not rows.num_rows:
            return
        self._stage(connection, rows)
        self._merge(connection, STAGED, rows.num_rows, overrule=overrule)
        connection.execute(SQL("DROP TABLE {}").format(STAGED))

    def _merge(
        self, connection: Connection, rows: Composable, count: int, *, overrule: bool
    ) -> None:
        connection.execute(
            SQL(
                "CREATE TEMP TABLE rivermark_latest ON COMMIT DROP AS "
                "SELECT DISTINCT ON ({keys}) {columns}, _deleted FROM {rows} s "
                "ORDER BY {keys}, {version} DESC NULLS LAST, _deleted DESC, {values} DESC"
            ).format(
                keys=self._keys,
                columns=names_of(self._target.columns),
                rows=rows,
                version=self._version("s"),
                values=self._texts("s"),
            )
        )
        if self._target.tombstones is not None:
            self._delete(connection)
        self._insert(connection, overrule=overrule)
        connection.execute(SQL("DROP TABLE {}").format(LATEST))

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
