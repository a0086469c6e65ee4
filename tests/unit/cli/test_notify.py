"""`rivermark notify` tries each receiver by the process that notices are sent by."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from rivermark.runtime.restart.notification import Receivers, send_due
from rivermark.runtime.restart.outbox import Outbox, Trouble
from tests.unit.cli.conftest import Run

KEEP = "import sys; open(sys.argv[1], 'a').write(sys.argv[3] + '\\n')"


class Web(BaseHTTPRequestHandler):
    """Keeps what it gets; `broken` makes it answer 503."""

    taken: list[Any]
    broken: list[bool]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.broken:
            self.taken.append(body)
        self.send_response(503 if self.broken else 200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def web() -> Iterator[tuple[str, type[Web]]]:
    kind = type("Own", (Web,), {"taken": [], "broken": []})
    server = HTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook?token=secret", kind
    server.shutdown()
    server.server_close()


def test_each_receiver_is_tried_and_said(
    rivermark: Run, tmp_path: Path, web: tuple[str, type[Web]]
) -> None:
    address, service = web
    note = tmp_path / "note"
    variables = {
        "RIVERMARK_NOTIFY_TO": json.dumps([address, "http://127.0.0.1:1/secret"]),
        "RIVERMARK_NOTIFY_COMMAND": json.dumps([sys.executable, "-c", KEEP, str(note)]),
    }

    result = rivermark("notify", "--json", env=variables)

    assert result.exit_code == 1
    command, good, bad = json.loads(result.stdout)["receivers"]
    assert (command["error"], good) == (None, {"receiver": "http at 127.0.0.1", "error": None})
    assert "Connection refused" in bad["error"]
    assert "secret" not in result.output
    assert "nothing is wrong" in note.read_text()
    assert service.taken[0]["cause"] == "test"


def test_an_address_that_is_none_is_not_shown(rivermark: Run) -> None:
    for wrong in ("https://secret:no", '"secret"', '["mail://secret"]', '[{"secret": 1}]'):
        result = rivermark("notify", env={"RIVERMARK_NOTIFY_TO": wrong})
        assert result.exit_code == 1
        assert "RIVERMARK_NOTIFY_TO" in result.output
        assert "secret" not in result.output


def test_a_receiver_that_has_a_notice_does_not_get_it_again(
    tmp_path: Path, web: tuple[str, type[Web]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, service = web
    note = tmp_path / "note"
    receivers = Receivers((sys.executable, "-c", KEEP, str(note)), (address,))
    monkeypatch.setenv("RIVERMARK_NOTIFY_TO", receivers.variables()["RIVERMARK_NOTIFY_TO"])
    outbox = Outbox(tmp_path)
    outbox.update("sensor", [Trouble(cause="given_up:taxi", about="taxi", message="given up")])

    service.broken.append(True)
    # Until the third try, which is not due soon.
    send_due(outbox, receivers.commands())
    assert note.read_text() == "given up\n"
    (waiting,) = outbox.notices()
    assert (waiting.sent, waiting.tries) == (False, 2)

    service.broken.clear()
    (due,) = outbox.due(waiting.due)
    outbox.tried(due, None, waiting.due)
    (sent,) = outbox.notices()
    assert (sent.sent, sent.taken) == (True, ())
