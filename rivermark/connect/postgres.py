"""A PostgreSQL database: how it is declared, and a connection that outlives the server's restarts.

Its client is the extra `postgres`, loaded when the first connection is made.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rivermark.connect.environment import resolved_settings
from rivermark.model.errors import DeclarationError, RivermarkError, ServiceFailed

if TYPE_CHECKING:
    from psycopg import Connection, Error
    from psycopg.sql import Composable

T = TypeVar("T")

PATIENCE_SECONDS: Final = 60.0
"""How long a server that restarts, or cannot be reached, is waited for."""
PAUSE_SECONDS: Final = 0.2
SECRET: Final = re.compile(r"password\s*=|://[^/?#@]*:[^/?#@]*@", re.IGNORECASE)
"""A password in a connection string, in either of libpq's two forms."""
DEFAULTS: Final = {
    "client_encoding": "UTF8",
    "connect_timeout": "10",
    # A server whose machine is gone says nothing.
    "keepalives_idle": "20",
    "tcp_user_timeout": "60000",
}
READING: Final = "SET LOCAL TimeZone = 'UTC'"
"""Set in each transaction: behind a pool the next one has another session of the server."""
WRITING: Final = (
    "SELECT set_config('TimeZone', 'UTC', true), "
    # A lock on the table is waited for as long as a server.
    "CASE WHEN current_setting('lock_timeout') = '0' "
    f"THEN set_config('lock_timeout', '{int(PATIENCE_SECONDS)}s', true) END, "
    # Committed is on disk, also where the server's default is not to wait for that.
    "CASE WHEN current_setting('synchronous_commit') = 'off' "
    "THEN set_config('synchronous_commit', 'on', true) END"
)
"""The same where something is written."""
PASSING: Final = (
    *("57P01", "57P02", "57P03"),  # The server stops, has crashed, or is starting.
    "57P05",  # The connection rested for longer than the server allows.
    "53300",  # The server has no connection left.
    *("40001", "40P01"),  # Chosen to let another transaction go on.
)
FULL: Final = re.compile(r"too many (clients|connections)|connection slots|no more connections")
"""How a server without a connection left says so, or a pool before it: libpq tells no code then."""


def require_postgres_client(what: str) -> None:
    """Raise RivermarkError where PostgreSQL's client is not installed; `what` needs it."""
    if find_spec("psycopg") is None:
        raise RivermarkError(f"{what} needs PostgreSQL's client: pip install 'rivermark[postgres]'")


@dataclass(frozen=True)
class Database:
    """A database by libpq's connection string or URI, and further settings of libpq.

    `address` and values of `settings` name environment variables by `$NAME`, and secrets are only
    to be had that way, or by libpq's own means: PGPASSWORD, a password file, a service file.
    """

    address: str
    settings: Mapping[str, str]

    def check(self, what: str) -> None:
        """Raise DeclarationError where a password is written down; `what` is declared with it."""
        secrets = (v for k, v in self.settings.items() if "password" in k and v[:1] != "$")
        if SECRET.search(self.address) or any(secrets):
            raise DeclarationError(
                f"{what}: a password does not belong in a declaration; name an environment "
                'variable that holds it, settings={"password": "$NAME"}, or use a file of libpq '
                "(PGPASSFILE, PGSERVICEFILE)"
            )

    def __str__(self) -> str:
        return f"PostgreSQL {self.address}".rstrip()

    def connection_settings(self, application: str) -> dict[str, Any]:
        """The settings of a connection.

        Raises:
            RivermarkError: the client is missing, a variable is not set, or libpq cannot read the
                address.
        """
        require_postgres_client(str(self))
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        named = resolved_settings("PostgreSQL", {"address": self.address, **self.settings})
        refusal = RivermarkError(
            f"the address of {self} is no connection string of libpq, such as "
            "postgresql://user@host:5432/database; in a password, @ is written %40 and / %2F"
        )
        try:
            address = conninfo_to_dict(named.pop("address"))
        except ProgrammingError:
            # The error shows parts of the string, which may be of the password.
            raise refusal from None
        if _is_misread(address):
            raise refusal
        return {**DEFAULTS, "application_name": application, **address, **named}


def _is_misread(address: Mapping[str, Any]) -> bool:
    """True if a part of a password was taken for the host, port or database, which errors show."""
    host, port, database = (str(address.get(name, "")) for name in ("host", "port", "dbname"))
    # A host that begins with it is an abstract socket.
    return "@" in host[1:] or "@" in database or not set(port) <= set("0123456789,")


def columns_of(connection: Connection, table: Composable) -> dict[str, tuple[str, bool]]:
    """The columns of a table or view, none where it is missing.

    Of each its type as PostgreSQL spells it, and whether it must have a value and has no default.
    """
    query = (
        "SELECT attname, format_type(atttypid, atttypmod), "
        "attnotnull AND NOT atthasdef AND attidentity = '' FROM pg_attribute "
        "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
    )
    rows = connection.execute(query, [table.as_string(connection)])
    return {name: (kind, is_required) for name, kind, is_required in rows}


def unwritable_columns(connection: Connection, table: Composable) -> dict[str, str]:
    """Columns of a table whose values the database makes itself, and how it does."""
    query = (
        "SELECT attname, CASE WHEN attgenerated <> '' THEN 'generated' ELSE 'identity' END "
        "FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped "
        "AND (attgenerated <> '' OR attidentity = 'a')"
    )
    return dict(connection.execute(query, [table.as_string(connection)]).fetchall())


def is_refused(error: Error, settings: Mapping[str, Any]) -> bool:
    """True if a server that accepts connections did not take one, for a reason that may not pass.

    Or it has started since.
    """
    from psycopg.conninfo import make_conninfo
    from psycopg.pq import PGconn, Ping

    if FULL.search(str(error)):
        return False
    # Whatever its certificate.
    place = {name: value for name, value in settings.items() if name[:3] != "ssl"}
    return PGconn.ping(make_conninfo(**place).encode()) == Ping.OK


class Session:
    """One connection to a database, made when it is needed, and again after it was lost.

    Used by one thread at a time. `application` is how the server lists it.
    """

    def __init__(
        self,
        database: Database,
        application: str,
        *,
        reads: bool = False,
        patience: float | None = None,
    ) -> None:
        self._patience = patience
        self._settled = (READING if reads else WRITING).encode()
        self._database = database
        self._settings = database.connection_settings(application)
        self._connection: Connection | None = None

    def run(self, what: str, action: Callable[[Connection], T]) -> T:
        """Do something in a transaction, and again while the server restarts or cannot be reached.

        Where the connection is lost at the commit, the action is done again though it may have been
        committed: it has to see that by itself. `what` says in errors what was to be done.

        Raises:
            ServiceFailed: the server refuses it, or was waited for in vain.
        """
        import psycopg

        patience = PATIENCE_SECONDS if self._patience is None else self._patience
        until = time.monotonic() + patience
        refused = 0
        while True:
            try:
                connection = self._open()
                with connection.transaction():
                    connection.execute(self._settled)
                    return action(connection)
            except psycopg.Error as error:
                if self._connection is None and is_refused(error, self._settings):
                    refused += 1
                is_lost = isinstance(error, psycopg.OperationalError) and error.sqlstate is None
                passes = error.sqlstate in PASSING or (is_lost and refused < 2)
                self.close()
                if not passes or time.monotonic() > until:
                    raise self._failed(what, error) from None
            except BaseException:
                self.close()
                raise
            time.sleep(PAUSE_SECONDS)

    @contextmanager
    def transaction(self, what: str) -> Iterator[Connection]:
        """A transaction for a block, which is not done again; raises as `run` does."""
        import psycopg

        self.run(what, lambda _: None)
        connection = self._open()
        try:
            with connection.transaction():
                connection.execute(self._settled)
                yield connection
        except psycopg.Error as error:
            self.close()
            raise self._failed(what, error) from None
        except BaseException:
            self.close()
            raise

    def _failed(self, what: str, error: Error) -> ServiceFailed:
        said = error.diag.message_primary or str(error).strip()
        # Not chained: its details hold values of the rows.
        return ServiceFailed(f"{what} at {self._database}: {said}", str(self._database))

    def for_tasks(self) -> Session:
        """One like it for another process, where no variable or file of this one is to be had."""
        known = self._open().info
        made = copy(self)
        made._connection = None
        made._settings = {**self._settings, **known.get_parameters(), "password": known.password}
        made._settings.pop("service", None)
        return made

    def close(self) -> None:
        """Close the connection; the next action makes another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> Connection:
        import psycopg

        if self._connection is None:
            # Without prepared statements: behind a pool the next server does not have them.
            self._connection = psycopg.connect(
                **self._settings, autocommit=True, prepare_threshold=None
            )
        return self._connection
