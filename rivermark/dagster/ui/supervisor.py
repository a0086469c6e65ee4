"""Starts Dagster's services, starts each again that has ended, and ends them together."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import psutil

from rivermark.dagster.ui.processes import Living, start
from rivermark.dagster.ui.record import Record, RecordFile
from rivermark.dagster.ui.services import (
    CODE_SERVER,
    CodeLocation,
    Service,
    environment,
    listens,
    services_of,
    socket_of,
    write_workspace,
)
from rivermark.model.restart_strategy import GrowingDelay, RestartStrategy
from rivermark.runtime.restart.notification import Receivers, ensure_sent
from rivermark.runtime.restart.outbox import Outbox, Trouble

POLL_SECONDS: Final = 0.5
HEAL_SECONDS: Final = 2.0
NOTIFY_SECONDS: Final = 2.0
WAIT_SECONDS: Final = 60.0
"""How long Dagster's services may take to end; a run that hosts a stream is none of them."""
CODE_SERVER_SECONDS: Final = 10.0
"""How long the code server may take: one whose runs live on stays until the last of them ends."""
STRATEGY: Final[RestartStrategy] = GrowingDelay(reset_after=timedelta(minutes=1))
"""Six starts in a row of a service that does not live for a minute; then it is given up."""


@dataclass
class SupervisedService:
    """One service: its process, when it was started, and when it is due again."""

    service: Service
    living: Living | None = None
    starts: list[datetime] = field(default_factory=list)
    due: datetime | None = None
    given_up: bool = False


@dataclass
class ServiceSupervisor:
    """Keeps the services of one page running until it is told to end.

    A service that a killed predecessor started is left running and supervised like one's own.
    `grace` is how many seconds a service may take to end on an interrupt before it is asked again.
    """

    host: str
    port: int
    record: RecordFile
    code: CodeLocation
    receivers: Receivers = field(default_factory=Receivers)
    strategy: RestartStrategy = STRATEGY
    standby_arguments: tuple[str, ...] = ()
    grace: float = 15.0
    services: Callable[[Path, str, int, CodeLocation], tuple[Service, ...]] = services_of

    def __post_init__(self) -> None:
        before = self.record.read()
        known = before.services if before else {}
        # Beside the record, and not in /tmp, which is cleaned while the page runs for months.
        self.folder = self.record.path.parent
        self.supervised = [
            SupervisedService(service, known.get(service.name))
            for service in self.services(self.folder, self.host, self.port, self.code)
        ]
        self._children: list[subprocess.Popen[bytes]] = []
        self._standby: subprocess.Popen[bytes] | None = None
        self._looked = self._notified = 0.0
        self._troubles: list[Trouble] = []
        self._gone = 0

    def run(self, ending: threading.Event) -> None:
        """Supervise until `ending` is set, then end the services and the standby."""
        for each in self.supervised:
            if each.living is not None and each.living.runs():
                _say(f"the {each.service.name} runs on as process {each.living.pid}")
            else:
                each.living, each.due = None, datetime.now(UTC)
        self._write()
        while not ending.is_set():
            self.check()
            ending.wait(POLL_SECONDS)
        self.end()

    def check(self) -> None:
        """Start what is due, and see what has ended since."""
        self._children = [child for child in self._children if child.poll() is None]
        for each in self.supervised:
            self._supervise(each)
        if self.standby_arguments and (self._standby is None or self._standby.poll() is not None):
            self._standby = start(
                "rivermark.dagster.ui.standby", self.standby_arguments, stdin=subprocess.PIPE
            )
        self._heal()
        self._notify()

    def _notify(self) -> None:
        """Note what was given up; have sent what is due, also where no sensor ticks any more."""
        if time.monotonic() - self._notified >= NOTIFY_SECONDS:
            self._notified = time.monotonic()
            Outbox(self.record.state).update("ui", self._troubles)
            ensure_sent(self.record.state, self.receivers)

    def end(self) -> None:
        """End the standby, the page and the daemon, and then the code server."""
        if self._standby is not None and self._standby.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._standby.stdin.write(b"end")
                self._standby.stdin.close()
        first = [each for each in self.supervised if each.service.name != CODE_SERVER]
        self._end(first, WAIT_SECONDS, kill=True)
        last = [each for each in self.supervised if each.service.name == CODE_SERVER]
        if self._end(last, CODE_SERVER_SECONDS, kill=False):
            for file in (socket_of(self.folder), self.folder / "workspace.yaml"):
                file.unlink(missing_ok=True)
        self.record.remove()

    def _end(self, supervised: list[SupervisedService], seconds: float, *, kill: bool) -> bool:
        """Interrupt services and wait for them; returns whether all have ended."""
        living = [each.living for each in supervised if each.living is not None]
        # An interrupt that meets a process while it is starting may be lost.
        for number, patience in ((signal.SIGINT, self.grace), (signal.SIGTERM, seconds)):
            for process in living:
                process.end(number)
            deadline = time.monotonic() + patience
            while any(process.runs() for process in living) and time.monotonic() < deadline:
                time.sleep(0.05)
        left = [process for process in living if process.runs()]
        for process in left if kill else []:
            process.end(signal.SIGKILL)
        for child in self._children:
            child.poll()
        return not left

    def _supervise(self, each: SupervisedService) -> None:
        now = datetime.now(UTC)
        if each.given_up or (each.due is None and each.living and each.living.runs()):
            return
        name = each.service.name
        if each.due is None:
            each.due = self.strategy.next_start(each.starts, now)
            if each.due is None:
                each.given_up = True
                self._give_up(each)
                return
            wait = max((each.due - now).total_seconds(), 0)
            _say(f"the {name} has ended; another is started in {wait:.0f} s")
        if each.due <= now and self._may_start(each.service):
            if name == CODE_SERVER:
                socket_of(self.folder).unlink(missing_ok=True)
            # Before each start: whoever tidies up may have taken it.
            write_workspace(self.folder, self.code.name)
            child = start(each.service.module, each.service.words, environment=environment())
            self._children.append(child)
            each.living, each.due = Living.of(child.pid), None
            each.starts.append(now)
            self._write()

    def _may_start(self, service: Service) -> bool:
        """The others read from the code server what there is."""
        return service.name == CODE_SERVER or listens(socket_of(self.folder))

    def _give_up(self, each: SupervisedService) -> None:
        name = each.service.name
        message = (
            f"the {name} of {self.host}:{self.port} is given up after {len(each.starts)} starts; "
            "its last lines say why. Mend the cause, end this process and start it again"
        )
        _say(message)
        self._troubles.append(Trouble(cause=f"ui:{name}", about=name, message=message))

    def _heal(self) -> None:
        """Restart the code behind a proxy that has lost it."""
        if time.monotonic() - self._looked < HEAL_SECONDS:
            return
        self._looked = time.monotonic()
        proxy = next((m.living for m in self.supervised if m.service.name == CODE_SERVER), None)
        serves = proxy is not None and proxy.runs() and listens(socket_of(self.folder))
        lost = proxy is not None and serves and code_server_is_gone(proxy.pid)
        self._gone = self._gone + 1 if lost else 0
        # Twice: a server that is being replaced is missing for a moment.
        if self._gone >= 2:
            heal(f"http://{self.host}:{self.port}/graphql")
            self._gone = 0

    def _write(self) -> None:
        services = {m.service.name: m.living for m in self.supervised if m.living is not None}
        self.record.write(
            Record(
                host=self.host,
                port=self.port,
                supervisor=Living.of(os.getpid()),
                services=services,
            )
        )


def _say(text: str) -> None:
    print(f"rivermark: {text}", flush=True)  # noqa: T201


RELOAD: Final = """
mutation Heal($name: String!) {
  reloadRepositoryLocation(repositoryLocationName: $name) { __typename }
}
"""


def code_server_is_gone(proxy: int) -> bool:
    """True if a proxy that runs has lost the code server that it speaks for."""
    try:
        children = psutil.Process(proxy).children()
    except psutil.NoSuchProcess:
        return False
    return not any("grpc" in _words(child) for child in children)


def heal(graphql: str) -> None:
    """Do what the button 'Reload' does, for every location."""
    for name in _location_names(graphql):
        print(f"rivermark: the code server of '{name}' is gone; starting another", flush=True)  # noqa: T201
        _ask(graphql, RELOAD, {"name": name})


def _location_names(graphql: str) -> list[str]:
    workspace = _ask(
        graphql, "{ workspaceOrError { ... on Workspace { locationEntries { name } } } }"
    )
    entries = (workspace.get("workspaceOrError") or {}).get("locationEntries") or []
    return [str(entry["name"]) for entry in entries]


def _ask(graphql: str, query: str, values: dict[str, str] | None = None) -> dict[str, dict]:  # type: ignore[type-arg]
    body = json.dumps({"query": query, "variables": values or {}}).encode()
    request = urllib.request.Request(  # noqa: S310 - the page that the supervisor started
        graphql, body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
            return dict(json.load(response).get("data") or {})
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return {}  # The page is not up yet, or just going down: the next poll tries again.


def _words(process: psutil.Process) -> list[str]:
    try:
        return [] if process.status() == psutil.STATUS_ZOMBIE else list(process.cmdline())
    except psutil.NoSuchProcess:
        return []
