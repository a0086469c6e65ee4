"""`dagster dev`, minded: heals its code server, and ends as a whole however it is told to end.

Two things go wrong with plain `dagster dev` 1.13 (both seen): when its code server is killed, the
location stays broken until somebody presses 'Reload', so that no sensor restarts a stream; and
SIGTERM ends only the parent, which leaves two daemons at the next start.

    python -m platform_defs.ui --port 3000
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from types import FrameType
from typing import Final

import psutil

from rivermark.runtime.supervision.heartbeat import ENDED, HeartbeatStore, host_alive
from rivermark.settings import Settings

POLL_SECONDS: Final = 2.0
WAIT_SECONDS: Final = 60.0
"""How long Dagster's services may take to end; a run that hosts a stream is none of them."""

RELOAD: Final = """
mutation Heal($name: String!) {
  reloadRepositoryLocation(repositoryLocationName: $name) { __typename }
}
"""


def main() -> int:
    """Run `dagster dev` until a signal ends it; returns its exit code."""
    parser = argparse.ArgumentParser(description="The platform in the browser.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=3000)
    options = parser.parse_args()
    ending = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        ending.set()

    # Before the start: a shell that runs this in the background has SIGINT ignored, and a process
    # begins with what its parent ignores.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    dagster = subprocess.Popen(
        [sys.executable, "-m", "dagster", "dev", "-h", options.host, "-p", str(options.port)],
        env={**os.environ, "PYTHONWARNINGS": "ignore:Function `dev_command` is superseded"},
        # Its own group: the terminal's interrupt reaches it once, from here.
        start_new_session=True,
    )
    without = 0
    while dagster.poll() is None:
        if ending.wait(POLL_SECONDS):
            # `dagster dev` ends its services on an interrupt and on nothing else.
            dagster.send_signal(signal.SIGINT)
            _wait(dagster)
        without = without + 1 if code_server_is_gone(dagster.pid) else 0
        # Twice: a server that is being replaced is missing for a moment.
        if without >= 2:
            heal(f"http://{options.host}:{options.port}/graphql")
            without = 0
    report_running_streams()
    return dagster.returncode or 0


def _wait(dagster: subprocess.Popen[bytes]) -> None:
    try:
        dagster.wait(WAIT_SECONDS)
    except subprocess.TimeoutExpired:
        dagster.kill()
        dagster.wait()


def code_server_is_gone(dagster: int) -> bool:
    """Whether a proxy below `dagster dev` has lost the code server that it speaks for."""
    for proxy in _below(dagster):
        if "code-server" in _words(proxy):
            servers = [child for child in _below(proxy.pid) if "grpc" in _words(child)]
            if not servers:
                return True
    return False


def heal(graphql: str) -> None:
    """Do what the button 'Reload' does, for every location."""
    for name in _location_names(graphql):
        print(f"rivermark: the code server of '{name}' is gone; starting another", flush=True)  # noqa: T201
        _ask(graphql, RELOAD, {"name": name})


def report_running_streams() -> None:
    """Print which streams outlive the page: their runs are processes of their own."""
    beats = HeartbeatStore(Settings().state).latest().values()
    living = sorted({b.group for b in beats if b.state not in ENDED and host_alive(b)})
    if living:
        names = " ".join(living)
        print(  # noqa: T201
            f"rivermark: streams run on without the page: {names}; "
            f"`rivermark pause GROUP` pauses one",
            flush=True,
        )


def _location_names(graphql: str) -> list[str]:
    workspace = _ask(
        graphql, "{ workspaceOrError { ... on Workspace { locationEntries { name } } } }"
    )
    entries = (workspace.get("workspaceOrError") or {}).get("locationEntries") or []
    return [str(entry["name"]) for entry in entries]


def _ask(graphql: str, query: str, values: dict[str, str] | None = None) -> dict[str, dict]:  # type: ignore[type-arg]
    body = json.dumps({"query": query, "variables": values or {}}).encode()
    request = urllib.request.Request(  # noqa: S310 - the address is the page started above
        graphql, body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
            return dict(json.load(response).get("data") or {})
    except (urllib.error.URLError, TimeoutError):
        return {}  # The page is not up yet, or just going down: the next poll tries again.


def _below(pid: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(pid).children())
    except psutil.NoSuchProcess:
        return []


def _words(process: psutil.Process) -> list[str]:
    try:
        return [] if process.status() == psutil.STATUS_ZOMBIE else list(process.cmdline())
    except psutil.NoSuchProcess:
        return []


if __name__ == "__main__":
    sys.exit(main())
