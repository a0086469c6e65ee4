"""PostgreSQL of this machine: started, stopped by its own process, and asked for a password."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rivermark.setup.ivy import Problem
from setup import postgres_server
from setup.local_server import free_port
from setup.postgres_server import PostgresServer, program


def test_a_server_keeps_its_tables_and_takes_nobody_without_the_password(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    with TemporaryDirectory() as folder:
        server = PostgresServer(Path(folder), free_port(), dies_with_parent=True)
        server.start()
        process = server.process()
        assert process is not None
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(server.database)
        monkeypatch.setenv("PGPASSFILE", str(server.passfile))
        with psycopg.connect(server.database) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
        server.start()
        assert server.process() == process
        assert server.stop()
        assert not process.is_running()
        assert not server.stop()
        server.start()
        with psycopg.connect(server.database) as connection:
            assert connection.execute("SELECT n FROM kept").fetchone() == (1,)
        server.stop()
    assert postgres.process() is not None


def test_a_machine_without_it_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        return program(f"no-{name}")

    monkeypatch.setattr(postgres_server, "program", missing)
    with pytest.raises(Problem, match=r"no-initdb is not installed: .* apt-get install postgresql"):
        PostgresServer(tmp_path / "postgres", free_port()).start()
    assert not (tmp_path / "postgres").exists()
