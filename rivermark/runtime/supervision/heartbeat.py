"""Heartbeats: one small file a stream, written by the process that hosts it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import gethostname
from typing import Final, Literal

import psutil

from rivermark.runtime.supervision import state_file
from rivermark.runtime.supervision.live_process import start_of
from rivermark.runtime.supervision.state_file import UnreadableState

State = Literal["starting", "running", "idle", "stopping", "stopped", "failed"]

WAITING: Final = "waiting_files"
"""Key in `numbers`: how much input is there and not yet taken: files, messages, or commits of the
tables that the stream reads."""

FAILURES: Final = "failures"
"""Key in `numbers`: how often the stream failed in a row, without a finished batch in between."""

GIVEN_UP: Final = "given_up"
"""Key in `numbers`, there only where the restart strategy allowed no further start in the run."""

REPEATED: Final = 3
"""Failures in a row, without a finished batch in between, after which a person has to look."""

ENDED: Final = frozenset({"stopped", "failed"})
"""States after which a stream does nothing more, so that a silence says nothing."""


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """The last reported status of one stream. All times are UTC.

    `pid` is the Python process that hosts the stream, which began at `start`, and `jvm_pid` its
    Spark session, both on `host`. `error` is the last failure, until a batch is finished: in state
    `starting` the run starts the stream again, in state `failed` it has given the stream up.
    `restartable` is False where another start would fail the same way (lost data, an incompatible
    checkpoint). `cause` is what it failed by, where others fail by the same. `waiting_since` is
    since when input waits without a finished batch. `numbers` are the stream's own figures, for
    people, for the stall rule, and for restarts.
    """

    stream: str
    group: str
    run_id: str
    pid: int
    host: str = field(default_factory=gethostname)
    start: str | None = None
    jvm_pid: int | None = None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    state: State = "starting"
    batch_id: int | None = None
    last_progress_at: datetime | None = None
    waiting_since: datetime | None = None
    watermark: datetime | None = None
    error: str | None = None
    cause: str | None = None
    restartable: bool = True
    numbers: dict[str, int | float] = field(default_factory=dict)
    code: str | None = None
    """The build that runs, with a hash of its module; None of an ingest."""

    @property
    def given_up(self) -> bool:
        """True if its restart strategy allowed no further start within the run."""
        return self.numbers.get(GIVEN_UP, 0) > 0


@dataclass(frozen=True)
class Beats:
    """All heartbeats at one moment: the readable ones, and why the others are not."""

    latest: dict[str, Heartbeat]
    unreadable: dict[str, str]


class HeartbeatStore:
    """The heartbeats of a deployment, in `<state root>/heartbeats`."""

    def __init__(self, state_root: str | Path) -> None:
        self._folder = Path(state_root) / "heartbeats"

    def beat(self, heartbeat: Heartbeat) -> None:
        """Replace the stream's heartbeat by this one."""
        finite = {k: v for k, v in heartbeat.numbers.items() if math.isfinite(v)}
        path = state_file.path_for(self._folder, heartbeat.stream)
        # The next one comes in seconds: not worth a sync.
        state_file.write(path, replace(heartbeat, numbers=finite), durable=False)

    def get(self, stream: str) -> Heartbeat | None:
        """The stream's last heartbeat, or None before the first; raises UnreadableState."""
        return state_file.read(state_file.path_for(self._folder, stream), Heartbeat)

    def read(self) -> Beats:
        """Every heartbeat there is. One damaged file never hides the others."""
        latest: dict[str, Heartbeat] = {}
        unreadable: dict[str, str] = {}
        for path in sorted(self._folder.glob("[a-z]*.json")):
            try:
                beat = state_file.read(path, Heartbeat)
            except UnreadableState as problem:
                unreadable[state_file.name_of(path)] = str(problem)
                continue
            if beat is not None:
                latest[beat.stream] = beat
        return Beats(latest, unreadable)

    def latest(self) -> dict[str, Heartbeat]:
        """The readable heartbeats by stream."""
        return self.read().latest

    @property
    def unreadable(self) -> dict[str, str]:
        """The streams whose heartbeat cannot be read, with the reason."""
        return self.read().unreadable


def host_alive(heartbeat: Heartbeat) -> bool | None:
    """Returns True if the process that wrote it still runs; None when it is on another machine.

    A process that started after the heartbeat has only inherited the number.
    """
    if heartbeat.host != gethostname():
        return None
    try:
        process = psutil.Process(heartbeat.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        if heartbeat.start is not None:
            return start_of(heartbeat.pid) == heartbeat.start
        started = datetime.fromtimestamp(process.create_time(), UTC)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
    # Two seconds: the kernel counts a process's start from boot in hundredths, boot in seconds.
    return started <= heartbeat.at + timedelta(seconds=2)
