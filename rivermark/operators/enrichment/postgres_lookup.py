"""A table of PostgreSQL that is looked up in: many keys a query."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from math import ceil
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from rivermark.model.ddl import struct_type
from rivermark.model.declared import declared
from rivermark.model.postgres import Database
from rivermark.operators.enrichment.lookup import Key, Lookup, LookupClient, LookupFailed

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed


@declared("lookup", lambda values: values.get("table"))
@dataclass(frozen=True, kw_only=True)
class PostgresLookup(Lookup):
    """Rows of a table (or view) of PostgreSQL by the columns that are called as those of the key.

    `columns` (DDL text) are read. `table` is a name, or schema.table; `database` and `settings` are
    as those of a `PostgresAppend`.
    """

    table: str
    columns: str
    database: str = ""
    settings: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    keys_at_once: int = 500

    def __post_init__(self) -> None:
        self._database.check(f"lookup '{self.table}'")
        struct_type(self.columns)

    @property
    def _database(self) -> Database:
        return Database(self.database, self.settings)

    @property
    def name(self) -> str:
        """The table and its database."""
        return f"table {self.table} of {self._database}"

    @property
    def schema(self) -> StructType:
        """The columns of its values."""
        return struct_type(self.columns)

    def open(self, on: Sequence[str], timeout: timedelta) -> LookupClient:
        """A client of one connection, which only reads."""
        return _Client(self, self._database, on, timeout)


class _Client(LookupClient):
    def __init__(
        self, lookup: PostgresLookup, database: Database, on: Sequence[str], timeout: timedelta
    ) -> None:
        from psycopg.sql import SQL, Identifier

        self._settings = {
            **database.connection_settings("rivermark lookup"),
            "connect_timeout": str(ceil(timeout.total_seconds())),
        }
        self._connection: Connection | None = None
        self._is_aborted = False
        self._on = len(on)
        self._select = SQL("SELECT {} FROM {} WHERE ({}) IN ").format(
            SQL(", ").join(map(Identifier, (*on, *lookup.schema.fieldNames()))),
            Identifier(*lookup.table.split(".")),
            SQL(", ").join(map(Identifier, on)),
        )

    def get(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[Any]]:
        import psycopg
        from psycopg.sql import SQL

        # Value by value, so that the server takes their types from the columns.
        key = SQL("({})").format(SQL(", ").join([SQL("%s")] * self._on))
        query = SQL("{}({})").format(self._select, SQL(", ").join([key] * len(keys)))
        self._is_aborted = False
        try:
            is_new = self._connection is None
            try:
                rows = self._rows(query, keys)
            except psycopg.OperationalError:
                if is_new or self._is_aborted or not self._is_lost:
                    raise
                # While it rested the server was started again.
                self.close()
                rows = self._rows(query, keys)
        except psycopg.Error as error:
            said = error.diag.message_primary or str(error).strip()
            passes = isinstance(error, psycopg.OperationalError)
            raise LookupFailed(said, passes=passes) from None
        values = {row[: self._on]: row[self._on :] for row in rows}
        if len(values) < len(rows):
            raise LookupFailed("it has several rows of a key", passes=False)
        return values

    def _rows(self, query: Composed, keys: Sequence[Key]) -> list[tuple[Any, ...]]:
        import psycopg

        if self._connection is None:
            self._connection = psycopg.connect(**self._settings, autocommit=True)
        return self._connection.execute(query, [*chain(*keys)]).fetchall()

    @property
    def _is_lost(self) -> bool:
        return self._connection is not None and self._connection.closed

    def abort(self) -> None:
        """Take the socket away: a server that is stopped hears of no cancellation."""
        self._is_aborted = True
        connection = self._connection
        if connection is not None:
            with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as twin:
                twin.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
