"""The supervisor: each service is started again alone, and given up when it does not stay."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rivermark.dagster.ui.processes import Living
from rivermark.dagster.ui.record import RecordFile
from rivermark.dagster.ui.services import (
    CODE_SERVER,
    CodeLocation,
    Service,
    code_location,
    is_free,
    services_of,
    socket_of,
    write_workspace,
)
from rivermark.dagster.ui.supervisor import ServiceSupervisor
from rivermark.model.errors import RivermarkError
from rivermark.model.restart_strategy import GrowingDelay
from rivermark.runtime.restart.notification import Receivers
from rivermark.testing import wait_until

SOON = GrowingDelay(first=timedelta(0), attempts=2)
SMALL = "tests.platform.small_service"
CODE = CodeLocation("my_project.definitions", "mine")
Make = Callable[..., ServiceSupervisor]


def small(*roles: str) -> Callable[[Path, str, int, CodeLocation], tuple[Service, ...]]:
    """A code server that listens, and one service a role."""
    return lambda folder, host, port, code: (
        Service(CODE_SERVER, SMALL, ("listens", str(socket_of(folder)))),
        *(Service(role, SMALL, (role,)) for role in roles),
    )


@pytest.fixture
def supervisors(tmp_path: Path) -> Iterator[Make]:
    made: list[ServiceSupervisor] = []

    def make(
        *roles: str, record: RecordFile | None = None, notify: tuple[str, ...] = ()
    ) -> ServiceSupervisor:
        supervisor = ServiceSupervisor(
            "127.0.0.1",
            1,
            record or RecordFile(tmp_path),
            CODE,
            receivers=Receivers(notify),
            strategy=SOON,
            grace=1,
            services=small(*roles),
        )
        made.append(supervisor)
        for each in supervisor.supervised:
            if each.living is None:
                each.due = datetime.now(UTC)
        return supervisor

    yield make
    for supervisor in made:
        supervisor.end()


def pids(supervisor: ServiceSupervisor) -> dict[str, int]:
    return {
        m.service.name: m.living.pid for m in supervisor.supervised if m.living and m.living.runs()
    }


def looks_until(supervisor: ServiceSupervisor, done: Callable[[], bool], reason: str) -> None:
    def look() -> bool:
        supervisor.check()
        return done()

    wait_until(look, 60, reason=reason)


def test_a_killed_service_is_started_again_and_the_others_run_on(supervisors: Make) -> None:
    supervisor = supervisors("daemon", "page")
    looks_until(supervisor, lambda: len(pids(supervisor)) == 3, "all run")
    before = pids(supervisor)

    os.kill(before["daemon"], signal.SIGKILL)
    looks_until(
        supervisor,
        lambda: pids(supervisor).get("daemon", before["daemon"]) != before["daemon"],
        "back",
    )

    after = pids(supervisor)
    assert {name for name in before if before[name] != after[name]} == {"daemon"}


def test_a_service_that_does_not_stay_is_given_up_with_one_notification(
    supervisors: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = tmp_path / "notes"
    append = "import sys; open(sys.argv[1], 'a').write(' '.join(sys.argv[2:]) + '\\n')"
    supervisor = supervisors("fails", "page", notify=(sys.executable, "-c", append, str(note)))

    looks_until(supervisor, lambda: supervisor.supervised[1].given_up, "given up")
    looks_until(supervisor, note.exists, "a process of its own has sent it")
    for _ in range(3):
        supervisor.check()

    assert len(supervisor.supervised[1].starts) == 3
    assert note.read_text().startswith(
        "ui:fails the fails of 127.0.0.1:1 is given up after 3 starts"
    )
    assert len(note.read_text().splitlines()) == 1
    assert "given up after 3 starts" in capsys.readouterr().out
    assert "page" in pids(supervisor)


def test_what_a_killed_supervisor_had_started_is_supervised_by_the_next(
    supervisors: Make, tmp_path: Path
) -> None:
    first = supervisors("daemon", "page")
    looks_until(first, lambda: len(pids(first)) == 3, "all run")
    before = pids(first)

    second = supervisors("daemon", "page")
    assert pids(second) == before
    os.kill(before["page"], signal.SIGKILL)
    looks_until(second, lambda: pids(second).get("page", before["page"]) != before["page"], "back")

    assert {**pids(second), "page": 0} == {**before, "page": 0}
    first.supervised.clear()


def test_the_end_of_the_supervisor_is_the_end_of_all_it_supervises(
    supervisors: Make, tmp_path: Path
) -> None:
    supervisor = supervisors("daemon", "page")
    looks_until(supervisor, lambda: len(pids(supervisor)) == 3, "all run")

    supervisor.end()

    # A code server that takes long to end is not waited for, nor killed: runs are its children.
    wait_until(lambda: pids(supervisor) == {}, 240, reason="the code server has ended")
    assert RecordFile(tmp_path).read() is None
    assert not (supervisor.folder / "workspace.yaml").exists()


def test_there_is_one_supervisor(tmp_path: Path) -> None:
    first, second = RecordFile(tmp_path), RecordFile(tmp_path)

    assert first.take(0)
    assert not second.take(0)


def standby(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "rivermark.dagster.ui.standby", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_standby_becomes_the_supervisor_when_it_is_killed() -> None:
    waiting = standby("--help")
    said, _ = waiting.communicate(timeout=60)  # the pipe closes without a word

    assert f"was killed; process {waiting.pid} takes over" in said
    assert "The platform in the browser." in said


def test_the_standby_ends_with_a_supervisor_that_ends_in_order() -> None:
    waiting = standby("--help")
    said, _ = waiting.communicate("end", timeout=60)

    assert (said, waiting.returncode) == ("", 0)


def test_a_process_is_known_by_its_start_too() -> None:
    own = Living.of(os.getpid())

    assert own.runs()
    assert not Living(own.pid, own.began, "another boot/1").runs()
    assert not Living(99_999_999, time.time()).runs()


def test_a_port_that_is_taken_is_not_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert not is_free("127.0.0.1", taken.getsockname()[1])


def test_page_and_daemon_read_what_the_code_server_serves(tmp_path: Path) -> None:
    code, daemon, page, documents = services_of(tmp_path, "127.0.0.1", 3000, CODE)
    write_workspace(tmp_path, CODE.name)

    assert str(socket_of(tmp_path)) in code.words
    assert code.words[code.words.index("--module-name") + 1] == CODE.module
    assert "location_name: mine" in (tmp_path / "workspace.yaml").read_text()
    assert str(socket_of(tmp_path)) in (tmp_path / "workspace.yaml").read_text()
    for service in (daemon, page):
        assert service.words[service.words.index("--workspace") + 1].endswith("workspace.yaml")
    assert documents.module == "rivermark.monitor.dashboard.document_server"


DG = """
[project]
name = "shown"
[tool.dg.project]
root_module = "platform_defs"
"""
WORKSPACE = "load_from: [{python_module: {module_name: mine.defs, location_name: mine}}]"


def test_the_page_is_that_of_the_project_in_the_working_folder(tmp_path: Path) -> None:
    with pytest.raises(RivermarkError, match="name their module with -m"):
        code_location(tmp_path)
    assert code_location(tmp_path, "given.defs") == ("given.defs", "given.defs")

    (tmp_path / "workspace.yaml").write_text("load_from: [python_module: plain]")
    assert code_location(tmp_path) == ("plain", "plain")
    (tmp_path / "workspace.yaml").write_text(WORKSPACE)
    assert code_location(tmp_path) == ("mine.defs", "mine")
    assert code_location(tmp_path, "mine.defs").name == "mine", "whose sensors are on is kept by it"

    (tmp_path / "pyproject.toml").write_text(DG)
    assert code_location(tmp_path) == ("platform_defs.definitions", "shown")
    (tmp_path / "workspace.yaml").write_text("load_from: [")
    with pytest.raises(RivermarkError, match=r"workspace\.yaml cannot be read"):
        code_location(tmp_path)


def test_this_repository_is_found_like_any_other() -> None:
    here = Path(__file__).parents[2]

    assert code_location(here) == ("platform_defs.definitions", "rivermark")


def test_r22_nothing_that_is_needed_later_lies_in_tmp(supervisors: Make, tmp_path: Path) -> None:
    supervisor = supervisors("daemon", "page")
    looks_until(supervisor, lambda: len(pids(supervisor)) == 3, "all run")
    workspace, before = supervisor.folder / "workspace.yaml", pids(supervisor)["daemon"]

    assert supervisor.folder == supervisor.record.path.parent
    workspace.unlink()
    os.kill(before, signal.SIGKILL)
    looks_until(supervisor, lambda: pids(supervisor).get("daemon", before) != before, "back")
    assert workspace.exists(), "whoever tidies up there: it is written before each start"


def test_r22_a_home_that_is_too_deep_for_a_socket_is_refused_in_one_sentence(
    tmp_path: Path,
) -> None:
    with pytest.raises(RivermarkError, match="choose a shorter home"):
        services_of(tmp_path / ("x" * 120), "127.0.0.1", 3000, CODE)


ENDS = """
import signal, sys, threading
from rivermark.runtime.supervision.live_process import on_interrupt
ending = threading.Event()
on_interrupt(lambda *_: ending.set())
print("ready", flush=True)
print(ending.wait(float(sys.argv[1])))
"""


@pytest.mark.parametrize(
    ("number", "ignored", "ends"),
    [
        (signal.SIGHUP, signal.SIG_DFL, True),
        (signal.SIGHUP, signal.SIG_IGN, False),
        (signal.SIGINT, signal.SIG_IGN, True),
    ],
)
def test_a_closed_terminal_ends_the_page_in_order_unless_nohup_keeps_it(
    number: signal.Signals, ignored: signal.Handlers, ends: bool
) -> None:
    before = signal.signal(number, ignored)
    try:
        program = subprocess.Popen(
            [sys.executable, "-c", ENDS, "60" if ends else "0.2"],
            stdout=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.signal(number, before)
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    program.send_signal(number)

    assert program.communicate(timeout=60)[0] == f"{ends}\n"
