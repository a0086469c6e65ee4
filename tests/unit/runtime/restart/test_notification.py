"""The command that tells a person: run with arguments, never as text of a shell."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rivermark.runtime.restart.notification import notify

KEEP = "import sys, json; open(sys.argv[1], 'w').write(json.dumps(sys.argv[2:]))"


def test_the_command_gets_incident_and_message_as_its_last_arguments(tmp_path: Path) -> None:
    note = tmp_path / "note"
    message = "$(touch owned); `touch owned` & \"quoted\" 'and'\nin two lines | > owned"

    assert notify((sys.executable, "-c", KEEP, str(note)), "given_up:taxi", message + "\0")

    assert json.loads(note.read_text()) == ["given_up:taxi", message + " "]
    assert not Path("owned").exists()


def test_without_a_command_nothing_is_done() -> None:
    assert not notify((), "given_up:taxi", "message")


@pytest.mark.parametrize("command", [("/no/such/command",), (sys.executable, "-c", "exit(3)")])
def test_a_command_that_fails_is_logged_and_stops_nothing(
    command: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    assert not notify(command, "given_up:taxi", "message")
    assert "the command that notifies" in caplog.text
