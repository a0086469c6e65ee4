"""M001: PostgreSQL behind PgBouncer in transaction mode, where a session is nobody's own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rivermark.lake.lake import Lake
from rivermark.operators import PostgresLookup
from rivermark.sinks import PostgresAppend, PostgresUpsert
from setup.local_server import free_port
from setup.postgres_server import PostgresServer
from tests.unit.sinks.conftest import connected, context, fares

BOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = [
    pytest.mark.skipif(BOUNCER is None, reason="needs Debian's package pgbouncer"),
    pytest.mark.usefixtures("new_schema"),
]


@pytest.fixture
def pooled(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The server of the tests by way of a pool of two sessions, as `$POOLED`."""
    # Not below pytest's folder, which no other account may enter: PgBouncer refuses to be root.
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    place = urlsplit(postgres.database)
    password = postgres.passfile.read_text().strip().split(":")[-1]
    port = free_port()
    users, ini = folder / "users.txt", folder / "pgbouncer.ini"
    users.write_text(f'"{place.username}" "{password}"\n')
    ini.write_text(
        f"[databases]\npostgres = host={place.hostname} port={place.port} dbname=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = plain\nauth_file = {users}\npool_mode = transaction\ndefault_pool_size = 2\n"
    )
    root = os.geteuid() == 0
    account = pwd.getpwnam("nobody").pw_name if root else None
    process = subprocess.Popen(
        [str(BOUNCER), str(ini)], user=account, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    monkeypatch.setenv("POOLED", f"postgresql://{place.username}@127.0.0.1:{port}/postgres")
    monkeypatch.setenv("POOLED_PASSWORD", password)
    try:
        yield
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def test_m001_three_sinks_and_a_lookup_share_a_pool_and_keep_their_promise(
    pooled: None, tmp_path: Path
) -> None:
    settings = {"password": "$POOLED_PASSWORD"}
    sinks = [
        PostgresAppend(table="one", database="$POOLED", settings=settings),
        PostgresAppend(table="other", database="$POOLED", settings=settings),
        PostgresUpsert(table="latest", database="$POOLED", settings=settings, version="at"),
    ]
    with connected() as connection:
        connection.execute("ALTER DATABASE postgres SET synchronous_commit = off")
        for name in ("one", "other", "latest"):
            key = ", UNIQUE (ride)" if name == "latest" else ""
            connection.execute(
                f"CREATE TABLE {name} (ride bigint, at timestamptz, fare float8, gone boolean, "
                "durable text DEFAULT current_setting('synchronous_commit'), "
                f"waits text DEFAULT current_setting('lock_timeout'){key})"
            )
    try:
        where = [context(Lake(str(tmp_path))) for _ in sinks]
        writers = [sink.open(place) for sink, place in zip(sinks, where, strict=True)]
        for batch in range(12):
            for writer, place in zip(writers, where, strict=True):
                writer.write(fares((batch, 1.0)), place.origin.batch(batch))
        for writer in writers:
            writer.close()
        lookup = PostgresLookup(
            table="latest", columns="fare double", database="$POOLED", settings=settings
        )
        with closing(lookup.open(["ride"], timedelta(seconds=10))) as client:
            for ride in range(12):
                assert client.get([(ride,)]) == {(ride,): (1.0,)}
        with connected() as connection:
            for name in ("one", "other", "latest"):
                rows = connection.execute(
                    f"SELECT count(*), min(durable), max(durable), "  # noqa: S608
                    f"min(waits) FROM {name}"
                ).fetchall()
                assert rows == [(12, "on", "on", "1min")], name
    finally:
        with connected() as connection:
            connection.execute("ALTER DATABASE postgres RESET synchronous_commit")
