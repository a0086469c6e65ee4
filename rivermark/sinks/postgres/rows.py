"""The rows of a target as they are: counted for a comparison, and those of a person erased."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import Connection
from psycopg.sql import SQL, Composable, Identifier, Literal

from rivermark.connect.postgres import columns_of
from rivermark.model.sink import Origin
from rivermark.sinks.postgres.target import Target, exists, text_of


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
