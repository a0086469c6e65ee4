"""Rows of a table of PostgreSQL in ranges of its blocks, all as of one snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from rivermark.connect.postgres import Session
from rivermark.ingest.source.payload import TypedRecords, numbered
from rivermark.ingest.source.typed_rows import record_columns
from rivermark.model.json_text import json_text
from rivermark.model.source import PIECE_BYTES, Piece, Records

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.abc import Buffer, Loader
    from psycopg.sql import Composable

ROWS_AT_ONCE: Final = 5_000
"""Rows that are Python objects at a time."""
SNAPSHOT: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
SIZE: Final = """
    WITH parts AS (
        SELECT relid FROM pg_partition_tree(%(table)s) WHERE isleaf
        UNION SELECT oid FROM pg_class WHERE oid = %(table)s::regclass AND relkind = 'r'
    )
    SELECT max(pg_relation_size(relid) / current_setting('block_size')::bigint),
        sum(pg_table_size(relid))::bigint
    FROM parts JOIN pg_class ON pg_class.oid = relid LEFT JOIN pg_am ON pg_am.oid = relam
    HAVING bool_and(amname IS NOT DISTINCT FROM 'heap')
"""
"""Blocks of the largest part of a table, and the bytes of all; no row of what has no blocks."""


class Blocks(NamedTuple):
    """Rows that begin in some blocks of their table; up to no block where there is no end."""

    first: int
    end: int | None


@dataclass(frozen=True, kw_only=True)
class BlocksPiece(Piece):
    """Rows in some blocks of a table, or all rows of what has none, such as a view."""

    session: Session
    snapshot: str
    table: str
    blocks: Blocks | None
    wanted: frozenset[str] | None

    def read(self) -> Iterator[Records]:
        """The rows, by a connection of their own."""
        try:
            with self.session.transaction(f"cannot read table {self.table}") as connection:
                connection.execute(SNAPSHOT)
                connection.execute(f"SET TRANSACTION SNAPSHOT '{self.snapshot}'".encode())
                yield from self.read_by(connection)
        finally:
            self.session.close()

    def read_by(self, connection: Connection) -> Iterator[Records]:
        """The rows, some at a time."""
        from psycopg.rows import dict_row
        from psycopg.sql import SQL

        keep_values(connection)
        query = SQL("SELECT * FROM {}{}").format(named(self.table), _where(self.blocks))
        with connection.cursor("rivermark_rows", row_factory=dict_row) as cursor:
            cursor.execute(query)
            for n in count():
                rows = cursor.fetchmany(ROWS_AT_ONCE)
                if not rows:
                    return
                yield numbered(self.splits[0], _typed(rows, self.wanted), n * ROWS_AT_ONCE)


def _typed(rows: list[dict[str, Any]], wanted: frozenset[str] | None) -> TypedRecords:
    payloads = pa.array([json_text(row).decode() for row in rows], pa.string())
    return TypedRecords(payloads, record_columns(rows, wanted))


def named(table: str) -> Composable:
    """A table as SQL names it."""
    from psycopg.sql import Identifier

    return Identifier(*table.split("."))


def _where(blocks: Blocks | None) -> Composable:
    from psycopg.sql import SQL, Literal

    if blocks is None:
        return SQL("")
    bounds = [SQL(" WHERE ctid >= {}::tid").format(Literal(f"({blocks.first},0)"))]
    if blocks.end is not None:
        bounds.append(SQL(" AND ctid < {}::tid").format(Literal(f"({blocks.end},0)")))
    return SQL("").join(bounds)


def ranges_of(connection: Connection, table: str) -> tuple[list[Blocks | None], int]:
    """Ranges of the blocks of a table, each about a piece, and their bytes in all.

    Those of its partitions together. Behind the last range there is none, so that rows which were
    added since belong to it.
    """
    from psycopg.sql import SQL

    name = named(table).as_string(connection)
    size = connection.execute(SIZE.encode(), {"table": name}).fetchone()
    if size is None:
        # What has no blocks is one range, as large as PostgreSQL guesses it.
        query = SQL("EXPLAIN (FORMAT JSON) SELECT * FROM {}").format(named(table))
        row = connection.execute(query).fetchone()
        plan = row[0][0]["Plan"] if row else {}
        return [None], int(plan.get("Plan Rows", 0) * plan.get("Plan Width", 0))
    blocks, total = size
    step = max(-(-blocks * PIECE_BYTES // max(total, 1)), 1)
    starts = [*range(0, max(blocks, 1), step)]
    return [Blocks(a, b) for a, b in zip(starts, [*starts[1:], None], strict=True)], total


def keep_values(connection: Connection) -> None:
    """Have each value come as it is; one that Python has not, such as `infinity`, as its text.

    A number within JSON would be a double, and a month of an interval thirty days.
    """
    from psycopg.types.json import set_json_loads

    for kind, loader in _loaders().items():
        connection.adapters.register_loader(kind, loader)
    set_json_loads(partial(json.loads, parse_float=Decimal), connection)


@cache
def _loaders() -> dict[str, type[Loader]]:
    from psycopg import DataError
    from psycopg.types import datetime as times
    from psycopg.types.string import TextLoader

    def or_text(loader: type[Loader]) -> type[Loader]:
        class OrText(loader):  # type: ignore[misc, valid-type]
            def load(self, data: Buffer) -> object:
                try:
                    return super().load(data)
                except DataError:
                    return bytes(data).decode()

        return OrText

    return {
        "date": or_text(times.DateLoader),
        "time": or_text(times.TimeLoader),
        "timetz": or_text(times.TimetzLoader),
        "timestamp": or_text(times.TimestampLoader),
        "timestamptz": or_text(times.TimestamptzLoader),
        "interval": TextLoader,
    }
