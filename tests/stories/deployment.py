"""A deployment as a user has it: page, daemon and code server as processes, with its own home."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

import psutil

from rivermark.dagster.ui.processes import Living
from rivermark.dagster.ui.record import Record, RecordFile
from rivermark.dagster.ui.services import CODE_SERVER
from rivermark.lake.log import CommitLog
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from rivermark.settings import Settings
from rivermark.testing import wait_until

ROOT = Path(__file__).parents[2]

Victim = Literal["run", "JVM", "daemon", "page", "code server", "UI", "all at once"]
VICTIMS: Final[tuple[Victim, ...]] = (
    "run",
    "daemon",
    "JVM",
    "page",
    "code server",
    "UI",
    "all at once",
)


LAST_TICK: Final = """
{
  sensorOrError(sensorSelector: {repositoryLocationName: "rivermark",
    repositoryName: "__repository__", sensorName: "restart_streams"}) {
    ... on Sensor { sensorState { ticks(limit: 2) { timestamp status } } }
  }
}
"""
LOOKED: Final = ("SKIPPED", "SUCCESS")
NIGHTLY_MERGE: Final = """
{
  scheduleOrError(scheduleSelector: {repositoryLocationName: "rivermark",
    repositoryName: "__repository__", scheduleName: "merge_late_nightly"}) {
    ... on Schedule { scheduleState { id status } }
  }
}
"""
STOP: Final = """
mutation Stop($id: String!) {
  stopRunningSchedule(id: $id) { __typename ... on PythonError { message } }
}
"""


@dataclass
class Deployment:
    """A running platform as `make ui` starts it; everything lies below `folder`."""

    folder: Path
    settings: Settings
    ui: subprocess.Popen[str]
    port: int
    recoveries: dict[str, list[float]] = field(default_factory=dict)

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

    def targets(self, victim: Victim, group: str) -> list[int]:
        """The processes that a victim is made of; those of the run must be alive."""
        record = self.record()
        proxy = record.services[CODE_SERVER]
        code = [p.pid for p in psutil.Process(proxy.pid).children() if "grpc" in command_line(p)]
        # Killing what is dead proves nothing; a run may hold its breath in its first batches.
        run = wait_until(lambda: self.living(group), 240, reason="the run lives")
        assert run is not None
        assert run.jvm_pid is not None
        by_victim = {
            "run": [run.pid],
            "JVM": [run.jvm_pid],
            "daemon": [record.services["daemon"].pid],
            "page": [record.services["page"].pid],
            "code server": code,
            "UI": [record.supervisor.pid],
        }
        if victim != "all at once":
            return by_victim[victim]
        return [pid for pids in by_victim.values() for pid in pids] + [proxy.pid]

    def kill(self, victim: Victim, group: str, table: str) -> float:
        """Kill a victim with signal 9; returns the seconds until its work goes on without a hand.

        Of a run that is the commit of another one. What kills no run leaves the run alive.
        """
        pids, before = self.targets(victim, group), self.record()
        _, run = self.last_commit(table)
        moment, began = time.time(), time.monotonic()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        hosts = victim in ("run", "JVM", "all at once")
        if hosts:
            wait_until(
                lambda: self.last_commit(table)[1] not in (run, None),
                600,
                reason=f"another run commits to {table} after the kill of {victim}",
            )
        else:
            wait_until(
                lambda: self._is_back(victim, before, moment),
                600,
                reason=f"the {victim} is back after its kill",
                interval=0.5,
            )
        seconds = time.monotonic() - began
        self.recoveries.setdefault(victim, []).append(seconds)
        if not hosts:
            assert self.last_commit(table)[1] == run, f"the kill of the {victim} ended the run"
        wait_until(
            lambda: self.living(group) is not None and self._serves(0),
            600,
            reason=f"run and page live after the kill of {victim}",
            interval=0.5,
        )
        return seconds

    def record(self) -> Record:
        """What is supervised now."""
        record = RecordFile(self.settings.state).read()
        assert record is not None
        return record

    def _is_back(self, victim: Victim, before: Record, moment: float) -> bool:
        now = self.record()
        if victim == "UI" and (now.supervisor == before.supervisor or not now.supervisor.runs()):
            return False
        # A code server is the child of the process that is supervised, which lives on.
        supervised = victim in now.services and victim != CODE_SERVER
        if supervised and now.services[victim] == before.services[victim]:
            return False
        return self._serves(moment if victim in ("daemon", "code server") else 0)

    def _serves(self, since: float) -> bool:
        """Whether the page answers, and the sensor that restarts streams has looked since then."""
        try:
            sensor = self.ask(LAST_TICK)["sensorOrError"]
        except (OSError, ValueError):
            return False
        ticks = (sensor.get("sensorState") or {}).get("ticks") or []
        return any(t["timestamp"] > since and t["status"] in LOOKED for t in ticks)

    def without_nightly_merge(self) -> None:
        """Let no late row be merged, at whatever hour a story runs: its oracle merges none."""
        wait_until(lambda: self._serves(0), 120, reason="the page serves", interval=0.5)
        state = self.ask(NIGHTLY_MERGE)["scheduleOrError"]["scheduleState"]
        stopped = self.ask(STOP, id=state["id"])["stopRunningSchedule"]
        assert stopped["__typename"] == "ScheduleStateResult", stopped

    def ask(self, query: str, **variables: str) -> Any:
        """What Dagster's page returns for a GraphQL query."""
        return graphql(self.port, query, **variables)

    def stop(self) -> None:
        """End whoever supervises the page now, and all that is left behind."""
        record = RecordFile(self.settings.state).read()
        supervisor = record.supervisor if record else Living.of(self.ui.pid)
        services = list(record.services.values()) if record else []
        supervisor.end(signal.SIGINT)
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not supervisor.runs(), 90, reason="the supervisor ends")
        hosts = [beat.pid for beat in HeartbeatStore(self.settings.state).latest().values()]
        for process in [supervisor, *services, *map(Living.of, hosts)]:
            process.end(signal.SIGKILL)
        self.ui.wait(10)


def percentile(seconds: Sequence[float], share: float) -> float:
    """The smallest of these times that at least this share of them does not exceed."""
    return sorted(seconds)[max(math.ceil(share * len(seconds)) - 1, 0)]


@contextlib.contextmanager
def deployed(folder: Path) -> Iterator[Deployment]:
    """Start the platform on a fresh instance; its log lies in `<folder>/ui.log`."""
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
    port = free_port()
    with (folder / "ui.log").open("w") as log:
        ui = subprocess.Popen(
            # What `make ui` runs: page, daemon and code server, supervised by one process.
            [sys.executable, "-m", "rivermark.dagster.ui", "--port", str(port)],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )
        deployment = Deployment(folder, Settings(home=home), ui, port)
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


def graphql(port: int, query: str, **variables: Any) -> Any:
    """What Dagster's page at a port returns for a GraphQL query."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql",
        json.dumps({"query": query, "variables": variables}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        return json.load(answer)["data"]


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
