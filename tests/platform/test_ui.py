"""The page that is supervised: what it does about Dagster's own processes."""

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rivermark.dagster.ui.__main__ import report_running_streams
from rivermark.dagster.ui.supervisor import code_server_is_gone, heal
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from rivermark.settings import Settings
from rivermark.testing import wait_until

# The code server's proxy and the server behind it, as far as their command lines go.
FAMILY = """
import subprocess, sys
role = sys.argv[1]
below = {"code-server": "grpc"}.get(role)
if below:
    child = subprocess.Popen([sys.executable, __file__, below], stdout=sys.stdout)
print(role, __import__("os").getpid(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def family(tmp_path: Path) -> Iterator[dict[str, int]]:
    script = tmp_path / "family.py"
    script.write_text(FAMILY)
    proxy = subprocess.Popen(
        [sys.executable, str(script), "code-server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert proxy.stdout is not None
    pids: dict[str, int] = {}
    while len(pids) < 2:
        role, pid = proxy.stdout.readline().split()
        pids[role] = int(pid)
    yield pids
    # The end of its standard input, which both share, is their end.
    proxy.communicate()


def test_a_code_server_that_runs_is_not_gone(family: dict[str, int]) -> None:
    assert not code_server_is_gone(family["code-server"])


def test_a_killed_code_server_is_gone(family: dict[str, int]) -> None:
    subprocess.run(["kill", "-9", str(family["grpc"])], check=True)

    wait_until(
        lambda: code_server_is_gone(family["code-server"]), 5, reason="the code server is gone"
    )


def test_before_dagster_is_up_nothing_is_gone() -> None:
    assert not code_server_is_gone(99_999_999)


class Page(http.server.BaseHTTPRequestHandler):
    asked: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        entries = [{"name": "rivermark"}]
        data = {"data": {"workspaceOrError": {"locationEntries": entries}}}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(data).encode())

    def log_message(self, *_: object) -> None:
        pass


def test_healing_reloads_every_location() -> None:
    Page.asked = []
    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        heal(f"http://127.0.0.1:{server.server_port}/graphql")
        server.shutdown()

    assert [body["variables"] for body in Page.asked] == [{}, {"name": "rivermark"}]
    assert "reloadRepositoryLocation" in Page.asked[1]["query"]


def test_a_page_that_does_not_answer_is_asked_another_time() -> None:
    heal("http://127.0.0.1:9/graphql")


def test_streams_that_run_on_without_the_page_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RIVERMARK_HOME", str(tmp_path))
    store = HeartbeatStore(Settings().state)
    living = Heartbeat(
        stream="taxi/rides",
        group="taxi",
        run_id="run-1",
        pid=os.getpid(),
        at=datetime.now(UTC),
        state="running",
    )
    store.beat(living)
    store.beat(replace(living, stream="web/clicks", group="web", state="stopped"))
    long_ago = datetime.now(UTC) - timedelta(days=9)
    store.beat(replace(living, stream="old/news", group="old", pid=99_999_999, at=long_ago))

    report_running_streams(Settings())

    assert "run on without the page: taxi;" in capsys.readouterr().out
