"""A PostgreSQL database: how it is declared, and a connection that outlives the server's restarts.

Its client is the extra `postgres`, loaded when the first connection is made.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rivermark.model.client_settings import require_postgres_client, resolved_settings
from rivermark.model.errors import DeclarationError, RivermarkError

if TYPE_CHECKING:
    from psycopg import Connection

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
    # A lock on the table is waited for as long.
    "options": f"-c lock_timeout={int(PATIENCE_SECONDS)}s -c TimeZone=UTC",
}
PASSING: Final = (
    *("57P01", "57P02", "57P03"),  # The server stops, has crashed, or is starting.
    *("40001", "40P01"),  # Chosen to let another transaction go on.
)


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
        """What a connection is made with.

        Raises:
            RivermarkError: the client is missing, a variable is not set, or libpq cannot read the
                address.
        """
        require_postgres_client(str(self))
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        named = resolved_settings("PostgreSQL", {"address": self.address, **self.settings})
        try:
            address = conninfo_to_dict(named.pop("address"))
        except ProgrammingError:
            # The error shows parts of the string, which may be of the password.
            raise RivermarkError(
                f"the address of {self} is no connection string of libpq, such as "
                "postgresql://user@host:5432/database"
            ) from None
        return {**DEFAULTS, "application_name": application, **address, **named}


class Session:
    """One connection to a database, made when it is needed, and again after it was lost.

    Used by one thread at a time. `application` is how the server lists it.
    """

    def __init__(self, database: Database, application: str) -> None:
        self._database = database
        self._settings = database.connection_settings(application)
        self._connection: Connection | None = None

    def run(self, what: str, action: Callable[[Connection], T]) -> T:
        """Do something in a transaction, and again while the server restarts or cannot be reached.

        Where the connection is lost at the commit, the action is done again though it may have been
        committed: it has to see that by itself. `what` says in errors what was to be done.

        Raises:
            RivermarkError: the server refuses it, or was waited for in vain.
        """
        import psycopg

        until = time.monotonic() + PATIENCE_SECONDS
        refused = 0
        while True:
            try:
                connection = self._open()
                with connection.transaction():
                    return action(connection)
            except psycopg.Error as error:
                if self._connection is None and self._is_serving():
                    # It has started since, or it has a reason that does not pass.
                    refused += 1
                is_lost = isinstance(error, psycopg.OperationalError) and error.sqlstate is None
                passes = error.sqlstate in PASSING or (is_lost and refused < 2)
                self.close()
                if not passes or time.monotonic() > until:
                    said = error.diag.message_primary or str(error).strip()
                    # Not chained: its details hold values of the rows.
                    raise RivermarkError(f"{what} at {self._database}: {said}") from None
            except BaseException:
                self.close()
                raise
            time.sleep(PAUSE_SECONDS)

    def close(self) -> None:
        """Close the connection; the next action makes another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> Connection:
        import psycopg

        if self._connection is None:
            connection = psycopg.connect(**self._settings, autocommit=True)
            # Committed is on disk, also where the server's default is not to wait for that.
            connection.execute(
                "SELECT set_config('synchronous_commit', 'on', false) "
                "WHERE current_setting('synchronous_commit') = 'off'"
            )
            self._connection = connection
        return self._connection

    def _is_serving(self) -> bool:
        """Whether a server accepts connections there, whatever its certificate."""
        from psycopg.conninfo import make_conninfo
        from psycopg.pq import PGconn, Ping

        place = {name: value for name, value in self._settings.items() if name[:3] != "ssl"}
        return PGconn.ping(make_conninfo(**place).encode()) == Ping.OK
