"""Sending: by a command with arguments, never by text of a shell, and in a process of its own."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import psutil
import pytest

from rivermark.runtime.restart.notification import STARTED, Receivers, ensure_sent, run, send_due
from rivermark.runtime.restart.outbox import Outbox, Trouble
from rivermark.testing import wait_until

KEEP = (
    "import json, os, sys; words = [*sys.argv[2:], os.environ['RIVERMARK_NOTICE']]; "
    "print(json.dumps(words), file=open(sys.argv[1], 'a'))"
)
HANG = "import subprocess, sys, time; subprocess.Popen(['sleep', '417']); time.sleep(417)"
TROUBLE = Trouble(cause="given_up:taxi", about="taxi", message="it is given up")


def kept(note: Path) -> list[list[str]]:
    return [json.loads(line) for line in note.read_text().splitlines()] if note.exists() else []


def test_the_command_gets_incident_and_message_as_its_last_arguments(tmp_path: Path) -> None:
    note = tmp_path / "note"
    message = "$(touch owned); `touch owned` & \"quoted\" 'and'\nin two lines | > owned"
    command = (sys.executable, "-c", KEEP, str(note))

    assert run(command, "given_up:taxi", message + "\0", over=False) is None

    assert kept(note) == [["given_up:taxi", message + " ", "open"]]
    assert not Path("owned").exists()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("/no/such/command",), "No such file"),
        ((sys.executable, "-c", "import sys; sys.exit('no network')"), "ended with 1: no network"),
    ],
)
def test_r13_a_command_that_fails_is_tried_again(
    tmp_path: Path, command: tuple[str, ...], why: str
) -> None:
    outbox = Outbox(tmp_path)
    outbox.update("sensor", [TROUBLE])
    (notice,) = outbox.due()

    error = run(command, notice.cause, notice.text, over=False)
    assert error is not None
    assert why in error
    outbox.tried(notice, error)

    (again,) = outbox.notices()
    assert (again.sent, again.tries) == (False, 1)
    assert again.due > notice.due


def test_r13_a_command_that_hangs_is_killed_with_what_it_has_started() -> None:
    error = run((sys.executable, "-c", HANG), "incident", "message", over=False, seconds=0.4)

    assert error is not None
    assert "was not done within" in error
    wait_until(lambda: not running("417"), 5)


def running(word: str) -> list[psutil.Process]:
    return [p for p in psutil.process_iter(["cmdline"]) if word in (p.info["cmdline"] or [])]


@pytest.mark.long
def test_r13_four_messages_by_a_command_that_hangs_hold_up_nobody(tmp_path: Path) -> None:
    """The sensor's part of a tick: noting what is wrong, and seeing to it that it is sent."""
    outbox = Outbox(tmp_path)
    command = (sys.executable, "-c", "import time; time.sleep(100)")
    began = time.monotonic()
    outbox.update("sensor", [Trouble(cause=c, about=c, message=c) for c in "abcd"])
    assert ensure_sent(tmp_path, Receivers(command))
    assert time.monotonic() - began < 1

    assert not ensure_sent(tmp_path, Receivers(command))
    wait_until(lambda: running("import time; time.sleep(100)"), 20)
    for process in (*running(str(tmp_path)), *running("import time; time.sleep(100)")):
        process.kill()
    wait_until(lambda: all(process.poll() is not None for process in STARTED), 5)


def test_r13_a_process_of_its_own_sends_and_says_when_it_is_over(tmp_path: Path) -> None:
    note, outbox = tmp_path / "note", Outbox(tmp_path)
    command = (sys.executable, "-c", KEEP, str(note))
    outbox.update("sensor", [TROUBLE])
    send_due(outbox, [command])
    outbox.update("sensor", [])
    send_due(outbox, [command])

    began, over = kept(note)
    assert began == ["given_up:taxi", "it is given up", "open"]
    assert over[0] == "given_up:taxi"
    assert over[1].startswith("over since ")
    assert over[2] == "over"
    assert outbox.notices() == []


def test_without_a_command_nothing_is_started_and_what_is_open_stays(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    outbox.update("sensor", [TROUBLE])

    assert not ensure_sent(tmp_path, Receivers())
    assert [notice.cause for notice in outbox.due()] == ["given_up:taxi"]
