"""Rows of a large batch on their way into PostgreSQL: tasks copy them, and the driver puts them.

Each task copies its rows into one table beside the target, which the driver's transaction then
reads. A piece has a name of its own for each time that it is copied, and only the pieces whose
names came back with the job count: those of a task that failed, or was tried twice, are left out.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import uuid4

import pyarrow as pa
from psycopg import Connection, DataError, IntegrityError
from psycopg.errors import InsufficientPrivilege
from psycopg.sql import SQL, Composable, Identifier, Literal
from pyspark.sql import SparkSession

from rivermark.connect.postgres import Session
from rivermark.model.rows import BatchRows, in_pieces
from rivermark.sinks.postgres.copying import Copying
from rivermark.sinks.postgres.target import Target, names_of

LOG: Final = logging.getLogger("rivermark")
PIECE: Final = "_rivermark_piece"
"""The column with the name of the piece that a row came with."""


class RowRefused(Exception):
    """A task found a row that the database does not take."""


@dataclass(frozen=True)
class Staged:
    """Rows that lie in a table of the database, by the pieces that count, and how many they are."""

    table: Identifier
    pieces: Mapping[str, int]

    @property
    def count(self) -> int:
        """Their number."""
        return sum(self.pieces.values())

    @property
    def rows(self) -> Composable:
        """The rows, as a part of a query."""
        query = SQL("(SELECT * FROM {} WHERE {} = ANY ({}))")
        return query.format(self.table, Identifier(PIECE), Literal([*self.pieces]))

    def is_whole(self, connection: Connection) -> bool:
        """False where the database has lost some of them, as it does when it crashes."""
        row = connection.execute(SQL("SELECT count(*) FROM {} s").format(self.rows)).fetchone()
        return row is not None and row[0] == self.count


@contextmanager
def staged(
    rows: BatchRows, copying: Copying, session: Session, stage: Identifier
) -> Iterator[Staged | None]:
    """Have tasks copy rows that executors wrote; None where the driver has to put them itself.

    That is so for its own rows, without the right to create a table, and where the database takes
    a row not: which one it is the driver finds.
    """
    spark = SparkSession.getActiveSession()
    if spark is None or isinstance(rows.readable(), pa.Table):
        yield None
        return
    what = f"cannot stage rows for table {copying.target.name}"
    try:
        session.run(what, partial(_create, copying.target, stage))
    except NotAllowed:
        LOG.info("%s: its account may create no table, so the driver sends them", what)
        yield None
        return
    try:
        task = partial(_copied, copying, session.for_tasks(), stage)
        frame = rows.frame(spark).select(*copying.schema.names)
        copied = frame.mapInArrow(task, "piece string, rows long").toArrow().to_pydict()
        refused = None in copied["piece"]
        pieces = dict(zip(copied["piece"], copied["rows"], strict=True))
        yield None if refused else Staged(stage, pieces)
    finally:
        session.run(what, partial(drop, stage))


class NotAllowed(Exception):
    """The account may not create tables."""


def drop(stage: Identifier, connection: Connection) -> None:
    """Drop the table of a batch that was killed, or that is written."""
    connection.execute(SQL("DROP TABLE IF EXISTS {}").format(stage))


def create_stage(
    connection: Connection, stage: Identifier, target: Target, *, passing: bool = False
) -> None:
    """Create a table for rows on their way into a target; a `passing` one ends with the commit."""
    mark = SQL(", false AS _deleted") if target.keys else SQL("")
    # What tasks leave there comes again after a crash, so that it needs no log.
    kind, end = ("TEMP", "ON COMMIT DROP") if passing else ("UNLOGGED", "")
    create = SQL("CREATE {} TABLE {} {} AS SELECT {}{}, '' AS {} FROM {} WITH NO DATA")
    parts = (names_of(target.columns), mark, Identifier(PIECE), target.table)
    connection.execute(create.format(SQL(kind), stage, SQL(end), *parts))


def _create(target: Target, stage: Identifier, connection: Connection) -> None:
    drop(stage, connection)
    try:
        create_stage(connection, stage, target)
    except InsufficientPrivilege as error:
        raise NotAllowed from error


def _copied(
    copying: Copying, session: Session, stage: Identifier, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Copy a partition in pieces; the name of each and its rows, or no name for a refused row."""
    try:
        for rows in in_pieces(batches):
            taken, refused = copying.taken(rows)
            if refused:
                raise RowRefused
            marked = copying.marked(taken)
            name = session.run(
                f"cannot copy rows for table {copying.target.name}",
                partial(_copy, copying, stage, marked),
            )
            yield pa.record_batch({"piece": [name], "rows": [marked.num_rows]})
    except RowRefused:
        yield pa.record_batch({"piece": pa.array([None], pa.string()), "rows": [0]})
    finally:
        session.close()


def _copy(copying: Copying, stage: Identifier, rows: pa.Table, connection: Connection) -> str:
    name = uuid4().hex
    named = rows.append_column(PIECE, pa.array([name] * rows.num_rows))
    try:
        copying.copy(connection, stage, named)
    except (DataError, IntegrityError) as error:
        raise RowRefused from error
    return name
