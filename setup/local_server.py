"""A server of this project on this machine: one process, on 127.0.0.1, stopped by its own id."""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import psutil

from rivermark.setup.ivy import Problem

ROOT: Final = Path(__file__).resolve().parents[1]

HOST: Final = "127.0.0.1"
START_SECONDS: Final = 120.0
STOP_SECONDS: Final = 30.0
CHILDREN: Final[list[subprocess.Popen[bytes]]] = []
"""What this process has started. A server is to outlive it, so none is waited for."""


@dataclass(frozen=True)
class LocalServer(ABC):
    """A server by its folder and port; `start` and `stop` may be called by different processes.

    `dies_with_parent`: it ends with the process that starts it, however that ends.
    """

    folder: Path
    port: int
    dies_with_parent: bool = False

    name: ClassVar[str]
    """What it is called in messages, in `make NAME` and by its files in the folder."""
    account: ClassVar[str | None] = None
    """The account that it runs under where this process is root; None: root's."""

    @property
    def address(self) -> str:
        """Where clients find it."""
        return f"{HOST}:{self.port}"

    @property
    def log(self) -> Path:
        """What it says."""
        return self.folder / f"{self.name}.log"

    def process(self) -> psutil.Process | None:
        """Its process, while that runs."""
        try:
            process = psutil.Process(int(self._pid_file.read_text()))
            # A process id is used again: only one that was started with our folder is ours.
            is_ours = any(str(self.folder) in word for word in process.cmdline())
        except (OSError, ValueError, psutil.Error):
            return None
        return process if is_ours and process.status() != psutil.STATUS_ZOMBIE else None

    def start(self) -> None:
        """Start it, and return when it serves requests; nothing happens where it runs already.

        Raises:
            Problem: it is not installed, the port is taken, or it ends or says nothing within two
                minutes.
        """
        if self.process() is not None:
            return
        if not is_free(self.port):
            raise Problem(
                f"port {self.port} of {HOST} is taken by another program: stop that, or take "
                f"another port (make {self.name} {self.name.upper()}_PORT={self.port + 100})"
            )
        self._prepare()
        with self.log.open("ab") as log:
            started = subprocess.Popen(
                [*self._tied(), *self._command()],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                # Ctrl-C in the terminal is not meant for it.
                start_new_session=True,
                **self._as_account(),
            )
        CHILDREN.append(started)
        self._pid_file.write_text(str(started.pid))
        deadline = time.monotonic() + START_SECONDS
        while not self._is_serving():
            if started.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise Problem(f"{self.name} did not start:\n{self._last_words()}")
            time.sleep(0.1)

    def stop(self) -> bool:
        """Stop it, and return when it is gone; False where none was running."""
        process = self.process()
        if process is not None:
            self._end(process)
            try:
                process.wait(STOP_SECONDS)
            except psutil.TimeoutExpired:
                process.kill()
                process.wait(STOP_SECONDS)
        self._pid_file.unlink(missing_ok=True)
        return process is not None

    @property
    @abstractmethod
    def use(self) -> str:
        """How it is used, for the person who has started it."""

    @abstractmethod
    def _prepare(self) -> None:
        """Make its folder and what it is started with; raises Problem where it is not installed."""

    @abstractmethod
    def _command(self) -> list[str]:
        """What starts it; its folder is part of it."""

    @abstractmethod
    def _is_serving(self) -> bool:
        """Whether it serves requests."""

    def _end(self, process: psutil.Process) -> None:
        """Ask it to end."""
        process.terminate()

    @property
    def _pid_file(self) -> Path:
        return self.folder / f"{self.name}.pid"

    def _tied(self) -> list[str]:
        tied = ["setpriv", "--pdeathsig", "KILL"] if self.dies_with_parent else []
        return tied if tied and shutil.which(tied[0]) else []

    def _as_account(self) -> Mapping[str, Any]:
        """How to start a program under its account."""
        account = self.account
        return {} if account is None else {"user": account, "group": account, "extra_groups": []}

    def _run(self, command: list[str]) -> None:
        """Run a program to its end; raises Problem where that is none."""
        with self.log.open("ab") as log:
            done = subprocess.run(
                command,
                stdout=log,
                stderr=log,
                timeout=START_SECONDS,
                check=False,
                **self._as_account(),
            )
        if done.returncode:
            raise Problem(f"the folder of {self.name} could not be made:\n{self._last_words()}")

    def _last_words(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-8:])


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Whether a port can be listened on."""
    with socket.socket() as probe:
        # As servers do it: connections of one that has ended may linger.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def run_command(
    description: str, folder: Path, port: int, made: Callable[[Path, int], LocalServer]
) -> None:
    """Read the command line `start|stop`, and do it."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("action", choices=["start", "stop"])
    parser.add_argument("--folder", type=Path, default=folder)
    parser.add_argument("--port", type=int, default=port)
    options = parser.parse_args()
    server = made(options.folder.resolve(), options.port)
    try:
        if options.action == "stop":
            print("stopped" if server.stop() else f"no {server.name} of this project is running")
            return
        server.start()
    except Problem as problem:
        sys.exit(f"rivermark {server.name}: {problem}")
    process = server.process()
    print(
        f"{server.use} (process {process.pid if process else '?'}, data and log in "
        f"{server.folder}); stop it with: make {server.name}-stop"
    )
