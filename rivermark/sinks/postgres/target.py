"""The tables of a sink in PostgreSQL: their names, their columns, and the ledger of batches.

The ledger has a row for each table that is written: which stream's output it holds, and the newest
batch of it. It is changed in the transaction that writes the batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from typing import Final, NamedTuple

from psycopg import Connection
from psycopg.sql import SQL, Composed, Identifier

from rivermark.connect.postgres import columns_of, unwritable_columns
from rivermark.model.errors import RivermarkError, TableSchemaMismatch
from rivermark.model.sink import Origin
from rivermark.model.table import Table
from rivermark.sinks.postgres.column_types import column_type, holds

LEDGER: Final = "rivermark_batches"
RESENT: Final = "rivermark_resent"
"""Keys of rows that were refused at first, and put later by hand."""
KINDS: Final = {"v": "view", "m": "materialized view", "f": "foreign table"}
"""What stands where a table is named, and is none."""
ONE_AT_A_TIME: Final = 0x72697665
"""The advisory lock under which tables are created."""


class Held(NamedTuple):
    """The ledger's record of a table."""

    stream: str
    output: str
    generation: int
    since: datetime
    batch: int


class Target:
    """A table that an output is written to; with `keys` it holds the latest row of each."""

    def __init__(
        self,
        name: str,
        table: Table,
        keys: tuple[str, ...] = (),
        version: str | None = None,
        deleted: str | None = None,
    ) -> None:
        self.name = name
        self.output = table
        self.columns = table.schema.fieldNames()
        self.keys = keys
        self.version = version
        self.deleted = deleted
        schema, _, self._short = name.rpartition(".")
        self._schema = [schema] if schema else []
        self.table = self._identifier(self._short)
        self.ledger = self._identifier(LEDGER)
        self.resent = self._identifier(RESENT)
        self.is_staged = False
        """Whether rows go by way of a temporary table, as COPY cannot write this one."""
        self.tombstones = None if deleted is None else self._identifier(f"{self._short}_tombstones")

    def _identifier(self, name: str) -> Identifier:
        return Identifier(*self._schema, name)

    def stage(self, replacement: str = "") -> Identifier:
        """The table in which tasks leave the rows of a batch, or of a replacement."""
        named = sha256(f"{self._short} {replacement}".encode()).hexdigest()[:16]
        return self._identifier(f"rivermark_staged_{named}")

    def prepare(self, connection: Connection) -> None:
        """Create what is missing; raises TableSchemaMismatch where the table does not fit."""
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [ONE_AT_A_TIME])
        for identifier, content in self._tables():
            if not exists(connection, identifier):
                # Only then: it needs rights on the schema even where nothing is to be done.
                connection.execute(SQL("CREATE TABLE {} ({})").format(identifier, content))
        self.is_staged = self._is_secured(connection)
        if wrong := self._misfits(connection):
            raise TableSchemaMismatch(
                f"table {self.name} in PostgreSQL cannot hold '{self.output.name}': "
                f"{'; '.join(wrong)}. Alter it there, or declare another table"
            )

    def _tables(self) -> list[tuple[Identifier, Composed]]:
        keys = self.keys
        tables = [
            (
                self.ledger,
                SQL(
                    "target text PRIMARY KEY, stream text NOT NULL, output text NOT NULL, "
                    "generation integer NOT NULL, since timestamptz NOT NULL, "
                    "batch bigint NOT NULL, written_at timestamptz"
                ).format(),
            ),
            (self.table, self._content(self.columns, keys)),
        ]
        if self.tombstones is not None:
            names = list(dict.fromkeys((*keys, *([self.version] if self.version else []))))
            tables.append((self.tombstones, self._content(names, keys)))
        return tables

    def _content(self, columns: list[str], keys: tuple[str, ...]) -> Composed:
        schema = self.output.schema
        parts = [
            SQL("{} {}").format(Identifier(name), SQL(column_type(schema[name].dataType) or ""))
            for name in columns
        ]
        if keys:
            parts.append(SQL("PRIMARY KEY ({})").format(names_of(keys)))
        return SQL(", ").join(parts)

    def _misfits(self, connection: Connection) -> list[str]:
        """The parts of an existing table that do not fit, a phrase each."""
        row = connection.execute(
            "SELECT relkind FROM pg_class WHERE oid = to_regclass(%s)",
            [self.table.as_string(connection)],
        ).fetchone()
        if row is not None and (kind := KINDS.get(text_of(row[0]))):
            return [f"it is a {kind}, and rows are written to tables: name the table behind it"]
        existing = columns_of(connection, self.table)
        wrong = [
            f"its column '{name}' is {how} there, so that it takes no value: leave it out of the "
            "output, or make it a plain column"
            for name, how in unwritable_columns(connection, self.table).items()
            if name in self.columns and (how == "generated" or self.keys or self.is_staged)
        ]
        for column in self.output.schema.fields:
            kind, _ = existing.get(column.name, (None, False))
            if kind is None:
                wrong.append(f"it has no column '{column.name}'")
            elif not holds(kind, column.dataType):
                wrong.append(
                    f"column '{column.name}' is {kind} there, and {column_type(column.dataType)} "
                    "is to be written"
                )
        for name, (_, required) in existing.items():
            if required and name not in self.columns:
                wrong.append(f"its column '{name}' must have a value, and none is written")
        if self.keys and not self._is_unique(connection):
            wrong.append(f"it has no unique index on exactly ({', '.join(self.keys)})")
        return wrong

    def _is_secured(self, connection: Connection) -> bool:
        """Returns True if the table has policies of row security that count for this account."""
        row = connection.execute(
            "SELECT row_security_active(to_regclass(%s))", [self.table.as_string(connection)]
        ).fetchone()
        return row is not None and bool(row[0])

    def _is_unique(self, connection: Connection) -> bool:
        indexed = connection.execute(
            "SELECT array_agg(attname::text) FROM pg_index JOIN pg_attribute "
            "ON attrelid = indrelid AND attnum = ANY (indkey) WHERE indrelid = %s::regclass "
            "AND indisunique AND indisvalid AND indpred IS NULL AND indexprs IS NULL "
            "GROUP BY indexrelid",
            [self.table.as_string(connection)],
        )
        return any(set(names) == set(self.keys) for (names,) in indexed)

    def held(self, connection: Connection, origin: Origin) -> Held | None:
        """Lock the table's row of the ledger, and return it.

        Raises:
            RivermarkError: the table holds another output's rows.
        """
        row = connection.execute(
            SQL(
                "SELECT stream, output, generation, since, batch FROM {} WHERE target = %s "
                "FOR UPDATE"
            ).format(self.ledger),
            [self._short],
        ).fetchone()
        held = None if row is None else Held(*row)
        if held is not None and (held.stream, held.output) != (origin.stream, self.output.name):
            raise RivermarkError(
                f"table {self.name} in PostgreSQL holds the rows of '{held.output}' by stream "
                f"'{held.stream}': declare another table for those of '{origin.stream}'"
            )
        return held

    def is_empty(self, connection: Connection) -> bool:
        """Returns True if the table holds no row at all."""
        query = SQL("SELECT EXISTS (SELECT FROM {})").format(self.table)
        row = connection.execute(query).fetchone()
        return row is not None and not row[0]

    def lock(self, connection: Connection, origin: Origin) -> Held | None:
        """Lock the table's row of the ledger, which is made where there is none, and return it."""
        connection.execute(
            SQL(
                "INSERT INTO {} (target, stream, output, generation, since, batch) "
                "VALUES (%s, %s, %s, %s, %s, -1) ON CONFLICT (target) DO NOTHING"
            ).format(self.ledger),
            [self._short, origin.stream, self.output.name, origin.generation, origin.since],
        )
        return self.held(connection, origin)

    def note(self, connection: Connection, origin: Origin, batch: int) -> None:
        """Write down that the table holds a batch."""
        connection.execute(
            SQL(
                "UPDATE {} SET generation = %s, since = %s, batch = %s, written_at = now() "
                "WHERE target = %s"
            ).format(self.ledger),
            [origin.generation, origin.since, batch, self._short],
        )

    def note_resent(self, connection: Connection, key: str) -> bool:
        """Note that a row which was refused is put again; False where it was before."""
        connection.execute(
            SQL(
                "CREATE TABLE IF NOT EXISTS {} (target text, key text, PRIMARY KEY (target, key))"
            ).format(self.resent)
        )
        noted = connection.execute(
            SQL("INSERT INTO {} VALUES (%s, %s) ON CONFLICT DO NOTHING").format(self.resent),
            [self._short, key],
        )
        return noted.rowcount > 0

    def forget_resent(self, connection: Connection, key: str) -> None:
        """Take the note back: the row was refused again."""
        connection.execute(
            SQL("DELETE FROM {} WHERE target = %s AND key = %s").format(self.resent),
            [self._short, key],
        )

    def archive(self, connection: Connection, stamp: str) -> list[str]:
        """Copy the rows to a table of their own, and forget them, deletions and batches."""
        if not exists(connection, self.table):
            return []
        removed = f"{self._short}_removed_{stamp.lower()}"
        connection.execute(
            SQL("CREATE TABLE {} AS TABLE {}").format(self._identifier(removed), self.table)
        )
        for table in (self.table, self.tombstones):
            if table is not None and exists(connection, table):
                connection.execute(SQL("DELETE FROM {}").format(table))
        if exists(connection, self.ledger):
            connection.execute(
                SQL("DELETE FROM {} WHERE target = %s").format(self.ledger), [self._short]
            )
        return [".".join((*self._schema, removed))]


def text_of(value: str | bytes) -> str:
    """A name of the catalog: without an encoding of the database its bytes."""
    return value.decode() if isinstance(value, bytes) else value


def exists(connection: Connection, table: Identifier) -> bool:
    """Returns True if a table is there."""
    row = connection.execute("SELECT to_regclass(%s)", [table.as_string(connection)]).fetchone()
    return row is not None and row[0] is not None


def names_of(columns: Iterable[str]) -> Composed:
    """Column names as SQL lists them."""
    return SQL(", ").join(map(Identifier, columns))
