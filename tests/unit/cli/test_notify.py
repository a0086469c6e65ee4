"""`rivermark notify` tries each receiver by the process that notices are sent by."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from rivermark.runtime.restart.notification import Receivers, send_due
from rivermark.runtime.restart.outbox import Outbox, Trouble
from tests.unit.cli.conftest import Run
from tests.web_service import serving

KEEP = "import sys; open(sys.argv[1], 'a').write(sys.argv[3] + '\\n')"


def test_each_receiver_is_tried_and_said(rivermark: Run, tmp_path: Path) -> None:
    note = tmp_path / "note"
    with serving(lambda _: (200, {})) as service:
        addresses = [f"{service.url}/hook?token=secret", "http://127.0.0.1:1/secret"]
        variables = {
            "RIVERMARK_NOTIFY_TO": json.dumps(addresses),
            "RIVERMARK_NOTIFY_COMMAND": json.dumps([sys.executable, "-c", KEEP, str(note)]),
        }
        result = rivermark("notify", "--json", env=variables)

    assert result.exit_code == 1
    command, good, bad = json.loads(result.stdout)["receivers"]
    assert (command["error"], good) == (None, {"receiver": "http at 127.0.0.1", "error": None})
    assert "Connection refused" in bad["error"]
    assert "secret" not in result.output
    assert "nothing is wrong" in note.read_text()
    assert json.loads(service.requests[0].body)["cause"] == "test"


def test_an_address_that_is_none_is_not_shown(rivermark: Run) -> None:
    for wrong in ("https://secret:no", '"secret"', '["mail://secret"]', '[{"secret": 1}]'):
        result = rivermark("notify", env={"RIVERMARK_NOTIFY_TO": wrong})
        assert result.exit_code == 1
        assert "RIVERMARK_NOTIFY_TO" in result.output
        assert "secret" not in result.output


def test_a_receiver_that_has_a_notice_does_not_get_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rivermark.runtime.restart.outbox.WAITS", (timedelta(seconds=0.1),))
    note = tmp_path / "note"
    outbox = Outbox(tmp_path)
    outbox.update("sensor", [Trouble(cause="given_up:taxi", about="taxi", message="given up")])
    # The service is away at first.
    with serving(lambda _: (503 if len(service.requests) == 1 else 200, {})) as service:
        receivers = Receivers((sys.executable, "-c", KEEP, str(note)), (service.url,))
        monkeypatch.setenv("RIVERMARK_NOTIFY_TO", receivers.variables()["RIVERMARK_NOTIFY_TO"])
        send_due(outbox, receivers.commands())

    assert note.read_text() == "given up\n"
    assert len(service.requests) == 2
    (sent,) = outbox.notices()
    assert (sent.sent, sent.tries, sent.taken) == (True, 0, ())
