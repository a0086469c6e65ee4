"""A table of PostgreSQL that is looked up in: many keys a query."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from rivermark.connect.postgres import Database, columns_of, is_refused
from rivermark.model.ddl import struct_type
from rivermark.model.declared import declared
from rivermark.model.errors import RivermarkError, TableSchemaMismatch
from rivermark.operators.enrichment.lookup import Key, Lookup, LookupClient, LookupFailed

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed

READABLE: Final[dict[type[DataType], tuple[str, ...]]] = {
    BinaryType: ("bytea",),
    BooleanType: ("boolean",),
    DateType: ("date",),
    DecimalType: ("numeric", "smallint", "integer", "bigint"),
    DoubleType: ("double precision", "real", "smallint", "integer"),
    FloatType: ("real",),
    IntegerType: ("integer", "smallint"),
    LongType: ("bigint", "integer", "smallint"),
    ShortType: ("smallint",),
    TimestampType: ("timestamp with time zone", "timestamp without time zone"),
}
"""The types of PostgreSQL whose values a column holds; a text holds those of all others."""
LENGTH: Final = re.compile(r"\([\d,-]+\)")
"""What a type's name says of length or precision."""


def is_readable(existing: str, kind: DataType) -> bool:
    """Returns True if values of a column of PostgreSQL may be values of the type."""
    name = LENGTH.sub("", existing)
    if isinstance(kind, StringType):
        return name not in chain(*READABLE.values())
    return name in READABLE.get(type(kind), (name,))


@declared("lookup", lambda values: values.get("table"))
@dataclass(frozen=True, kw_only=True)
class PostgresLookup(Lookup):
    """Rows of a table (or view) of PostgreSQL by the columns that are called as those of the key.

    `columns` (DDL text) are read; one that the table lacks or has as another type ends the batch.
    `table` is a name, or schema.table; `database` and `settings` are as those of a
    `PostgresAppend`.
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


OWN: Final[dict[str, Any]] = {"autocommit": True, "prepare_threshold": None}
"""Behind a pool the next server has no statement that was prepared on another one."""


class _Client(LookupClient):
    def __init__(
        self, lookup: PostgresLookup, database: Database, on: Sequence[str], timeout: timedelta
    ) -> None:
        from psycopg.sql import SQL, Identifier

        self._refusal = f"{lookup.name} cannot be looked up in"
        self._columns = {field.name: field.dataType for field in lookup.schema.fields}
        self._settings = {
            **database.connection_settings("rivermark lookup"),
            "connect_timeout": str(ceil(timeout.total_seconds())),
        }
        self._connection: Connection | None = None
        self._is_aborted = False
        self._on = on
        self._table = Identifier(*lookup.table.split("."))
        self._select = SQL("SELECT {} FROM {} WHERE ({}) IN ").format(
            SQL(", ").join(map(Identifier, (*on, *self._columns))),
            self._table,
            SQL(", ").join(map(Identifier, on)),
        )

    def get(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[Any]]:
        import psycopg
        from psycopg.sql import SQL

        # Value by value, so that the server takes their types from the columns.
        key = SQL("({})").format(SQL(", ").join([SQL("%s")] * len(self._on)))
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
            if isinstance(error, psycopg.ProgrammingError):
                # Of the declaration, or of the account's rights, whichever key it is.
                raise RivermarkError(f"{self._refusal}: {said}") from None
            passes = isinstance(error, psycopg.OperationalError)
            of_a_key = isinstance(error, psycopg.DataError)
            raise LookupFailed(said, passes=passes, of_a_key=of_a_key) from None
        width = len(self._on)
        values = {row[:width]: row[width:] for row in rows}
        if len(values) < len(rows):
            raise LookupFailed("it has several rows of a key", passes=False, of_a_key=True)
        if strange := values.keys() - set(keys):
            # They would all count as absent.
            raise RivermarkError(
                f"{self._refusal}: for a key ({', '.join(self._on)}) it has "
                f"{min(strange, key=repr)}, which is of another type or form"
            )
        return values

    def _rows(self, query: Composed, keys: Sequence[Key]) -> list[tuple[Any, ...]]:
        if self._connection is None:
            self._connection = self._connect()
            self._check(self._connection)
        return self._connection.execute(query, [*chain(*keys)]).fetchall()

    def _connect(self) -> Connection:
        import psycopg

        try:
            return psycopg.connect(**self._settings, **OWN)
        except psycopg.OperationalError as error:
            if not is_refused(error, self._settings):
                raise
        try:
            # It may have started since.
            return psycopg.connect(**self._settings, **OWN)
        except psycopg.OperationalError as error:
            passes = not is_refused(error, self._settings)
            raise LookupFailed(str(error).strip(), passes=passes) from None

    def _check(self, connection: Connection) -> None:
        """Raise TableSchemaMismatch where the table has not the columns that are declared."""
        existing = columns_of(connection, self._table)
        missing = [name for name in (*self._on, *self._columns) if name not in existing]
        wrong = [f"it has no column '{name}'" for name in missing]
        for name, kind in self._columns.items():
            if name in existing and not is_readable(existing[name][0], kind):
                wrong.append(
                    f"column '{name}' is {existing[name][0]} there, and {kind.simpleString()} is "
                    "declared"
                )
        if wrong:
            raise TableSchemaMismatch(
                f"{self._refusal}: {'; '.join(wrong) if existing else 'it does not exist'}"
            )

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
