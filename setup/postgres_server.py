"""PostgreSQL on this machine: `python -m setup.postgres_server start|stop --folder F --port P`.

The programs are those of the distribution (on Debian the package `postgresql`); the cluster is one
of its own. It listens on 127.0.0.1 alone, asks for a password, which is in its folder, and keeps
all that it writes there.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from signal import SIGINT
from typing import ClassVar, Final

import psutil

from rivermark.setup.ivy import Problem
from setup.local_server import HOST, ROOT, LocalServer, run_command

PORT: Final = 5433
"""Not the usual one, where a server of the machine's own may listen."""
FOLDER: Final = ROOT / ".rivermark" / "postgres"
USER: Final = "rivermark"
SETTINGS: Final = {
    "unix_socket_directories": "",
    "listen_addresses": HOST,
    "shared_buffers": "32MB",
    "max_connections": "40",
}


def program(name: str) -> str:
    """The path of one of PostgreSQL's programs; raises Problem where it is not installed."""
    # Debian keeps them beside one another by version, and off the PATH.
    installed = sorted(
        Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda p: float(p.parts[-3])
    )
    path = str(installed[-1]) if installed else shutil.which(name)
    if path is None:
        raise Problem(
            f"PostgreSQL's program {name} is not installed: on Debian, apt-get install postgresql"
        )
    return path


@dataclass(frozen=True)
class PostgresServer(LocalServer):
    """A cluster by its folder and port; `database` is its one database.

    Without `durable` it does not wait for the disk: what it holds survives its own end only.
    """

    port: int = PORT
    durable: bool = True

    name: ClassVar = "postgres"

    @property
    def account(self) -> str | None:  # type: ignore[override]
        """The server refuses to run as root."""
        if os.geteuid() != 0:
            return None
        names = {entry.pw_name for entry in pwd.getpwall()}
        return "postgres" if "postgres" in names else "nobody"

    @property
    def database(self) -> str:
        """How clients name it, without the password."""
        return f"postgresql://{USER}@{self.address}/postgres"

    @property
    def passfile(self) -> Path:
        """The file that PGPASSFILE names: it holds the password."""
        return self.folder / "pgpass"

    @property
    def use(self) -> str:
        """Its database, and where the password is."""
        return f"PostgreSQL serves {self.database}; first: export PGPASSFILE={self.passfile}"

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _prepare(self) -> None:
        initdb = program("initdb")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")
        if (self._data / "PG_VERSION").exists():
            return
        password, passwords = secrets.token_urlsafe(18), self.folder / "password"
        self.passfile.touch(0o600)
        self.passfile.write_text(f"{HOST}:*:*:{USER}:{password}\n")
        # What an initdb that broke off has left.
        shutil.rmtree(self._data, ignore_errors=True)
        self._data.mkdir(0o700)
        passwords.touch(0o600)
        passwords.write_text(password)
        if self.account is not None:
            for path in (self.folder, self._data, passwords):
                shutil.chown(path, self.account)
        self._run(
            [
                *(initdb, "-D", str(self._data), "-U", USER, "--pwfile", str(passwords)),
                *("--auth", "scram-sha-256", "-E", "UTF8", "--locale", "C.UTF-8", "--no-sync"),
            ]
        )
        passwords.unlink()

    def _command(self) -> list[str]:
        values = {**SETTINGS, "fsync": str(self.durable).lower()}
        settings = [word for name, value in values.items() for word in ("-c", f"{name}={value}")]
        return [program("postgres"), "-D", str(self._data), "-p", str(self.port), *settings]

    def _is_serving(self) -> bool:
        command = [program("pg_isready"), "-q", "-h", HOST, "-p", str(self.port)]
        return subprocess.run(command, check=False).returncode == 0

    def _end(self, process: psutil.Process) -> None:
        # SIGTERM would wait for clients to leave.
        process.send_signal(SIGINT)


if __name__ == "__main__":
    run_command(__doc__ or "", FOLDER, PORT, PostgresServer)
