"""The sinks to PostgreSQL as they are declared: rows appended, or the latest row of each key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from psycopg import Connection
from psycopg.sql import SQL, Composable, Identifier, Literal

from rivermark.connect.postgres import Database, Session, columns_of, require_postgres_client
from rivermark.lake.quoting import quoted
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.sink import Delivery, Holding, OnReplace, Origin, Sink, SinkContext, SinkWriter
from rivermark.sinks.latest_row import check_versioned, is_deletion
from rivermark.sinks.postgres.column_types import column_type
from rivermark.sinks.postgres.target import Target, exists, text_of
from rivermark.sinks.undelivered import undelivered_of

if TYPE_CHECKING:
    from rivermark.model.table import Table
    from rivermark.sinks.postgres.target import Target

CHECK_PATIENCE: Final = 5.0
"""How long a check waits for a server that is away."""
LONGEST_COLUMN: Final = 63
"""Bytes of a name that PostgreSQL keeps."""
LONGEST_NAME: Final = 38
"""Bytes of a table's name: with `_removed_` and a time it has the 63 that PostgreSQL keeps."""


def name_of_sink(values: Mapping[str, Any]) -> object:
    """The name of a sink before it is made: its table's."""
    return values.get("table")


@dataclass(frozen=True, kw_only=True)
class _PostgresSink(Sink):
    table: str
    database: str = ""
    settings: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    delivery: ClassVar[Delivery] = Delivery(
        "exactly once", "by a transaction that holds rows and batch"
    )

    keeps_last: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._database.check(f"sink '{self.table}'")
        schema, _, name = self.table.rpartition(".")
        if not name or "." in schema or "%" in self.table or len(name.encode()) > LONGEST_NAME:
            raise DeclarationError(
                f"sink '{self.table}': `table` is the name of a table or schema.table without %, "
                f"of at most {LONGEST_NAME} bytes without the schema"
            )

    @property
    def _database(self) -> Database:
        return Database(self.database, self.settings)

    @property
    def target(self) -> str:
        """The table and its database."""
        return f"table {self.table} of {self._database}"

    def check(self, table: Table) -> None:
        """Refuse columns of a type, or with a name, that PostgreSQL does not have."""
        for column in table.schema.fields:
            if len(column.name.encode()) > LONGEST_COLUMN:
                raise DeclarationError(
                    f"table '{table.name}': the name of column '{column.name}' has "
                    f"{len(column.name.encode())} bytes, and PostgreSQL keeps {LONGEST_COLUMN} of "
                    "them: rename it, as in .withColumnRenamed(...)"
                )
            if column_type(column.dataType) is None:
                raise DeclarationError(
                    f"table '{table.name}': column '{column.name}' is of type "
                    f"{column.dataType.simpleString()}, which PostgreSQL does not have"
                )

    def _target(self, table: Table) -> Target:
        # Before what loads the client, which is an extra.
        require_postgres_client(f"writing to {self.target}")
        from rivermark.sinks.postgres.target import Target

        return Target(self.table, table, *self._latest(table))

    def _latest(self, table: Table) -> tuple[Any, ...]:
        """The keys of which the latest row is kept, the version and what deletes, where it is."""
        return ()

    def tables(self, table: Table) -> tuple[Table, ...]:
        """The table of rows that the database did not take."""
        return (undelivered_of(table),)

    def archive(self, context: SinkContext, stamp: str) -> list[str]:
        """Copy the rows to `<table>_removed_<stamp>`, and empty the table."""
        target = self._target(context.table)
        session = Session(self._database, f"rivermark {context.origin.stream}")
        try:
            return session.run(
                f"put aside the rows of stream '{context.origin.stream}'",
                lambda connection: target.archive(connection, stamp),
            )
        finally:
            session.close()

    def holding(self, context: SinkContext) -> Holding | None:
        """Count the rows, by days where the table has some."""
        target, days = self._target(context.table), context.table.days

        session = Session(
            self._database,
            f"rivermark {context.origin.stream}",
            reads=True,
            patience=CHECK_PATIENCE,
        )
        by_day = None if days is None or target.keys else days.column
        try:
            counted = session.run(
                "count its rows",
                lambda connection: rows_by_day(target, connection, context.origin, by_day),
            )
        finally:
            session.close()
        batch = max((batch for batch, _, _ in counted), default=-1)
        rows = {day: n for _, day, n in counted if n is not None}
        return Holding(
            batch, sum(rows.values()), None if by_day is None else rows, self._expected(context)
        )

    def _expected(self, context: SinkContext) -> str:
        return Holding(-1).expected

    def erase(
        self, context: SinkContext, values: Mapping[str, Sequence[str]], *, dry_run: bool
    ) -> int | None:
        """Delete a person's rows there, with their tombstones and what resets have put aside."""
        target = self._target(context.table)

        session = Session(self._database, f"rivermark {context.origin.stream}")
        try:
            return session.run(
                "erase rows",
                lambda connection: erase_rows(target, connection, values, dry_run=dry_run),
            )
        finally:
            session.close()


@declared("sink", name_of_sink)
@dataclass(frozen=True, kw_only=True)
class PostgresAppend(_PostgresSink):
    """Appends each row to a table of PostgreSQL; a recompute replaces the rows of its days.

    `table` is its name, or schema.table; it is created if it is missing. `database` is a connection
    string or URI of libpq without a password, or `$NAME` for that of an environment variable;
    without it libpq's own variables count (PGHOST, PGDATABASE, PGSERVICE). `settings` are those of
    libpq, such as `sslmode`. A value `$NAME` is that of the environment variable; a password is
    only taken that way, or from PGPASSWORD or a file of libpq.
    """

    on_replace: ClassVar[OnReplace] = "replaces days"

    def open(self, context: SinkContext) -> SinkWriter:
        """Create what is missing, and compare the table's columns."""
        target = self._target(context.table)
        from rivermark.sinks.postgres.writer import Appender

        return Appender(target, self._database, context, self.target)


@declared("sink", name_of_sink)
@dataclass(frozen=True, kw_only=True)
class PostgresUpsert(_PostgresSink):
    """Keeps the latest row of each key in a table of PostgreSQL.

    Keys are the values of the columns `key`, or of the table's `keys`. `version` and `deleted` are
    as those of a `DeltaUpsert`, and likewise rows may come in any order; keys that were deleted are
    kept in `<table>_tombstones`. The rest is as in a `PostgresAppend`. A table that exists needs a
    unique index on the keys.
    """

    version: str
    deleted: str | None = None
    key: tuple[str, ...] = ()

    on_replace: ClassVar[OnReplace] = "merges"
    updates_rows: ClassVar[bool] = True

    @property
    def target(self) -> str:
        """The table, and which row of a key is in it."""
        return f"{super().target}, latest row of each key by {self.version}"

    def check(self, table: Table) -> None:
        """Refuse a table without keys or without the version column."""
        super().check(table)
        check_versioned(table, self.version, self.key)

    def needed(self, table: Table) -> tuple[str, ...]:
        """The keys."""
        return self.key or table.keys

    def _latest(self, table: Table) -> tuple[Any, ...]:
        return (self.key or table.keys, self.version, self.deleted)

    def _expected(self, context: SinkContext) -> str:
        """The number of keys whose latest row does not delete them."""
        keys = self.key or context.table.keys
        listed, gone = ", ".join(map(quoted, keys)), is_deletion(self.deleted)
        known = " AND ".join(f"{quoted(key)} IS NOT NULL" for key in keys)
        return (
            f"SELECT count(*) AS n FROM (SELECT {gone} AS gone FROM rows WHERE {known} "  # noqa: S608
            f"QUALIFY 1 = row_number() OVER (PARTITION BY {listed} "
            f"ORDER BY {quoted(self.version)} DESC NULLS LAST, gone DESC)) WHERE NOT gone"
        )

    def open(self, context: SinkContext) -> SinkWriter:
        """Create what is missing, and compare the table's columns."""
        target = self._target(context.table)
        from rivermark.sinks.postgres.upserter import Upserter

        return Upserter(target, self._database, context, self.target)


def rows_by_day(
    target: Target, connection: Connection, origin: Origin, day: str | None
) -> list[Any]:
    """The newest batch with the number of rows at it, by the date (UTC) of a column or alone.

    One statement, so that no batch comes in between; nothing where a table is missing.
    """
    if not (exists(connection, target.table) and exists(connection, target.ledger)):
        return []
    by: Composable = SQL("NULL::date")
    if day is not None:
        kind = columns_of(connection, target.table).get(day, ("", False))[0]
        in_utc = "({} AT TIME ZONE 'UTC')::date" if kind.startswith("timestamp") else "{}"
        by = SQL(in_utc).format(Identifier(day))
    return connection.execute(
        SQL(
            "WITH held AS (SELECT max(batch) AS batch FROM {ledger} WHERE target = {target} "
            "AND generation = {generation}), counted AS "
            "(SELECT {by} AS day, count(*) AS n FROM {table} GROUP BY 1) "
            "SELECT coalesce(batch, -1), day, n FROM held LEFT JOIN counted ON true"
        ).format(
            ledger=target.ledger,
            target=Literal(target.name.rpartition(".")[2]),
            generation=Literal(origin.generation),
            by=by,
            table=target.table,
        )
    ).fetchall()


def erase_rows(
    target: Target, connection: Connection, values: Mapping[str, Sequence[str]], *, dry_run: bool
) -> int:
    """Delete the rows with one of the values, in what was put aside too; or count them."""
    schema, _, short = target.name.rpartition(".")
    removed = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = "
        "(SELECT relnamespace FROM pg_class WHERE oid = to_regclass(%s)) "
        "AND relkind = 'r' AND starts_with(relname, %s)",
        [target.table.as_string(connection), f"{short}_removed_"],
    )
    archived = [Identifier(*([schema] if schema else []), text_of(name)) for (name,) in removed]
    total = 0
    for table in (target.table, *([target.tombstones] if target.tombstones else []), *archived):
        own = columns_of(connection, table)
        conditions = [
            SQL("{}::text = ANY({})").format(Identifier(name), Literal([*texts]))
            for name, texts in values.items()
            if name in own
        ]
        if conditions:
            action = SQL("SELECT count(*) FROM" if dry_run else "DELETE FROM")
            where = SQL(" OR ").join(conditions)
            done = connection.execute(SQL("{} {} WHERE {}").format(action, table, where))
            row = done.fetchone() if dry_run else None
            total += done.rowcount if row is None else row[0]
    return total
