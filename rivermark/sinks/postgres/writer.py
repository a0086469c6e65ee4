"""Writes batches to a table of PostgreSQL, each in one transaction with its row of the ledger."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
from psycopg import Connection, DataError, IntegrityError
from psycopg.sql import SQL, Composable, Identifier, Literal

from rivermark.connect.postgres import Database, Session
from rivermark.lake.day_predicates import days_of, is_date, ranges
from rivermark.model.errors import CheckpointIncompatible, RivermarkError
from rivermark.model.rows import BatchRows, Rows, as_rows
from rivermark.model.sink import BatchIdentity, SinkContext, SinkWriter
from rivermark.sinks.postgres.copying import Copying, Refusal, body_of, rows_of_body
from rivermark.sinks.postgres.staging import Staged, create_stage, drop, staged
from rivermark.sinks.postgres.target import Held, Target, names_of
from rivermark.sinks.undelivered import Refused, Undelivered, keyed

STAGED: Final = Identifier("pg_temp", "rivermark_staged")


class _KeptAway(Exception):
    """A row that was written without an error is not there."""


class Writer(SinkWriter):
    """Writes what `_put` makes of a batch's rows.

    The driver sends its own rows. Many, in files, are copied by tasks beside the table and put by
    one statement; where the database does not take them as they are, the driver sends them piece by
    piece, and finds the rows that are refused.
    """

    def __init__(
        self, target: Target, database: Database, context: SinkContext, described: str
    ) -> None:
        self._target = target
        self._undelivered = Undelivered(context, described)
        self._origin = context.origin
        self._copying = Copying(target)
        self._session = Session(database, f"rivermark {context.origin.stream}")
        self._session.run(f"{self._subject} open its table", target.prepare)

    @property
    def _subject(self) -> str:
        return f"stream '{self._origin.stream}' cannot"

    @abstractmethod
    def _put(self, connection: Connection, rows: pa.Table, *, overrule: bool) -> None:
        """Put rows into the table; with `overrule` they count before others of their version."""

    @abstractmethod
    def _merge(
        self, connection: Connection, rows: Composable, count: int, *, overrule: bool
    ) -> None:
        """Put so many rows of another table, which may be read once and more."""

    def last(self) -> BatchIdentity | None:
        """The newest batch, as the ledger says it."""
        return self._last

    @cached_property
    def _last(self) -> BatchIdentity | None:
        def read(connection: Connection) -> tuple[BatchIdentity | None, bool]:
            drop(self._target.stage(), connection)
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
        with staged(batch_rows, self._copying, self._session, self._target.stage()) as copied:
            self._session.run(
                f"{self._subject} write batch {identity.batch}",
                lambda connection: self._write(connection, batch_rows, copied, identity),
            )
        self._last = identity
        return batch_rows.count()

    def _write(
        self, connection: Connection, rows: BatchRows, copied: Staged | None, batch: BatchIdentity
    ) -> None:
        newest = self._newest(self._target.lock(connection, self._origin))
        if newest is not None and newest.batch >= batch.batch:
            return  # Committed, and the answer was lost; or by a run that took the stream over.
        refused = self._put_all(connection, rows, copied, overrule=False)
        self._target.note(connection, self._origin, batch.batch)
        self._origin.check()
        # Before the transaction ends: behind it the batch would not come again.
        self._undelivered.write(self._kept(refused, batch), batch)

    def _put_all(
        self, connection: Connection, rows: BatchRows, copied: Staged | None, *, overrule: bool
    ) -> list[Refusal]:
        """Put the rows, at once or piece by piece; returns those that the database refuses."""
        if copied is not None and self._put_copied(connection, copied, overrule=overrule):
            return []
        refused = []
        for piece in rows.pieces(self._target.columns):
            table, known = self._copying.taken(piece)
            refused += [*known, *self._put_each(connection, table, overrule=overrule)]
        return refused

    def _put_copied(self, connection: Connection, copied: Staged, *, overrule: bool) -> bool:
        """Put rows that tasks have copied; False where not all are there, or one is refused."""

        def put() -> None:
            if not copied.is_whole(connection):
                raise _KeptAway("the database has lost rows that tasks have copied")
            self._merge(connection, copied.rows, copied.count, overrule=overrule)

        return _refusal(connection, put) is None

    def _kept(self, refused: Sequence[Refusal], batch: BatchIdentity) -> list[Refused]:
        bodies = keyed(batch, (body for body, _ in refused))
        pairs = zip(bodies, refused, strict=True)
        return [Refused(body, key, reason) for (body, key), (_, reason) in pairs]

    def _put_each(self, connection: Connection, rows: pa.Table, *, overrule: bool) -> list[Refusal]:
        """Put the rows, but those that the database refuses, which are found by halving them."""
        if not rows.num_rows:
            return []
        error = _refusal(connection, lambda: self._put(connection, rows, overrule=overrule))
        if error is None:
            return []
        if rows.num_rows == 1:
            return [(body_of(rows), self._reason(error))]
        half = rows.num_rows // 2
        parts = (rows.slice(0, half), rows.slice(half))
        return [
            refusal
            for part in parts
            for refusal in self._put_each(connection, part, overrule=overrule)
        ]

    def _reason(self, error: Exception) -> str:
        if not isinstance(error, DataError | IntegrityError):
            return f"table {self._target.name}: {error}"
        said = error.diag.message_primary or str(error).strip()
        named = re.search(r", column ([^:]+):", error.diag.context or "")
        column = error.diag.column_name or (named[1] if named else None)
        where = f", column '{column}'" if column else ""
        return f"table {self._target.name}{where}: {said}"

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
        stage = self._target.stage(replacement)

        def act(connection: Connection) -> None:
            self._target.held(connection, self._origin)
            self._remove(connection, days)
            refused = self._put_all(connection, batch_rows, copied, overrule=True)
            self._undelivered.add(self._kept(refused, named), {"replacement": replacement})

        with staged(batch_rows, self._copying, self._session, stage) as copied:
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
                row = rows_of_body(waiting["body"].encode(), self._copying.schema)
            except pa.ArrowException as error:
                return f"its JSON cannot be read again: {error}"
            rows, refused = self._copying.taken(row)
            if not refused and self._target.note_resent(connection, waiting["idempotency_key"]):
                refused = self._put_each(connection, rows, overrule=False)
                if refused:
                    self._target.forget_resent(connection, waiting["idempotency_key"])
            return refused[0][1] if refused else None

        return act

    def _stage(self, connection: Connection, rows: pa.Table) -> None:
        """Copy rows into a table of this transaction alone."""
        create_stage(connection, STAGED, self._target, passing=True)
        self._copying.copy(connection, STAGED, self._copying.marked(rows))

    @abstractmethod
    def _remove(self, connection: Connection, days: Collection[date]) -> None:
        """Remove the rows of days in whose place others come."""

    def close(self) -> None:
        """Close the connection."""
        self._session.close()
        self._undelivered.close()


def _refusal(connection: Connection, put: Callable[[], None]) -> Exception | None:
    """Put rows; returns why the database refuses one of them, and has none of them then."""
    connection.execute("SAVEPOINT rivermark_rows")
    try:
        put()
    except (DataError, IntegrityError, _KeptAway) as error:
        connection.execute("ROLLBACK TO SAVEPOINT rivermark_rows")
        return error
    connection.execute("RELEASE SAVEPOINT rivermark_rows")
    return None


def _check_taken(taken: int, count: int) -> None:
    if taken < count:
        raise _KeptAway("a trigger or rule of the table kept the row away")


class Appender(Writer):
    """Appends the rows; those of a recompute come in place of their days' rows."""

    def _put(self, connection: Connection, rows: pa.Table, *, overrule: bool) -> None:
        if self._target.is_staged:
            self._stage(connection, rows)
            self._merge(connection, STAGED, rows.num_rows, overrule=overrule)
            connection.execute(SQL("DROP TABLE {}").format(STAGED))
            return
        taken = self._copying.copy(connection, self._target.table, rows)
        _check_taken(taken, rows.num_rows)

    def _merge(
        self, connection: Connection, rows: Composable, count: int, *, overrule: bool
    ) -> None:
        columns = names_of(self._target.columns)
        put = SQL("INSERT INTO {} ({}) SELECT {} FROM {} s")
        done = connection.execute(put.format(self._target.table, columns, columns, rows))
        _check_taken(done.rowcount, count)

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
