"""A deployment as a user has it: page, daemon and code server as processes, with its own home."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psutil

from rivermark.lake.log import CommitLog
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from rivermark.settings import Settings
from rivermark.testing import wait_until

ROOT = Path(__file__).parents[2]


@dataclass
class Deployment:
    """A running platform as `make ui` starts it; everything lies below `folder`."""

    folder: Path
    settings: Settings
    daemon: subprocess.Popen[str]
    recoveries: list[float] = field(default_factory=list)

    def set_desired(self, group: str, state: str) -> None:
        """Record that a group should run or be paused."""
        DesiredStore(self.settings.state).set(
            group,
            state,  # type: ignore[arg-type]
            by="story",
            reason="the story",
        )

    def beats(self, group: str) -> dict[str, Heartbeat]:
        """The heartbeats of a group."""
        latest = HeartbeatStore(self.settings.state).latest()
        return {name: beat for name, beat in latest.items() if beat.group == group}

    def living(self, group: str) -> Heartbeat | None:
        """A heartbeat of the run that hosts the group now, if one lives and has done a batch."""
        for beat in self.beats(group).values():
            young = (datetime.now(UTC) - beat.at).total_seconds() < 15
            if young and beat.state == "running" and psutil.pid_exists(beat.pid):
                return beat
        return None

    def last_commit(self, table: str) -> tuple[int, str | None]:
        """Version and run of the newest commit of a stream's table."""
        log = CommitLog(self.settings.lake().path(table))
        for commit in log.backwards():
            if "run" in commit.metadata:
                return commit.version, str(commit.metadata["run"])
        return -1, None

    def kill(self, pid: int, group: str, table: str) -> float:
        """Kill a process with signal 9; returns the seconds until another run has committed."""
        _, before = self.last_commit(table)
        began = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        wait_until(
            lambda: self.last_commit(table)[1] not in (before, None),
            240,
            reason=f"another run commits to {table} after the kill of {pid}",
        )
        self.recoveries.append(time.monotonic() - began)
        wait_until(lambda: self.living(group) is not None, 120, reason="the new run lives")
        return self.recoveries[-1]

    def code_servers(self) -> list[psutil.Process]:
        """The processes that load the code for the daemon."""
        children = psutil.Process(self.daemon.pid).children(recursive=True)
        return [p for p in children if "grpc" in command_line(p)]

    def stop(self) -> None:
        """End the daemon as a terminal does, and all that it leaves behind."""
        family = psutil.Process(self.daemon.pid).children(recursive=True)
        self.daemon.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.daemon.wait(60)
        for process in [*family, psutil.Process(os.getpid())]:
            if process.pid != os.getpid() and process.is_running():
                with contextlib.suppress(psutil.Error):
                    process.kill()
        if self.daemon.poll() is None:
            self.daemon.kill()


@contextlib.contextmanager
def deployed(folder: Path) -> Iterator[Deployment]:
    """Start the platform on a fresh instance; its log lies in `<folder>/daemon.log`."""
    home, dagster_home = folder / "home", folder / "dagster"
    dagster_home.mkdir(parents=True)
    shutil.copy(ROOT / "instance" / "dagster.yaml", dagster_home / "dagster.yaml")
    binaries = Path(sys.executable).parent
    environment = os.environ | {
        "DAGSTER_HOME": str(dagster_home),
        "RIVERMARK_HOME": str(home),
        "RIVERMARK_TRIGGER_SECONDS": "1",
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
    }
    with (folder / "daemon.log").open("w") as log:
        daemon = subprocess.Popen(
            # What `make ui` runs: page, daemon and code server, minded by one process.
            [sys.executable, "-m", "platform_defs.ui", "--port", str(free_port())],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )
        deployment = Deployment(folder, Settings(home=home), daemon)
        try:
            yield deployment
        finally:
            deployment.stop()


def command_line(process: psutil.Process) -> list[str]:
    """A process's command line; none for one that just ended."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def free_port() -> int:
    """A free port on this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def pause(dice: random.Random, low: float, high: float) -> float:
    """Let a random while pass, drawn from seeded dice; returns the seconds."""
    seconds = dice.uniform(low, high)
    time.sleep(seconds)
    return seconds
