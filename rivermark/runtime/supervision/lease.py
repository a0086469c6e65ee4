"""The right to run a stream: one process at a time holds it, and its death frees it at once."""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import gethostname
from types import TracebackType
from typing import Final, Self
from uuid import uuid4

import psutil

from rivermark.lake.full_disk import is_disk_full
from rivermark.model.errors import LeaseLost, RivermarkError, StreamAlreadyRunning
from rivermark.runtime.supervision import state_file
from rivermark.runtime.supervision.heartbeat import ENDED, Heartbeat, HeartbeatStore
from rivermark.runtime.supervision.live_process import Owner, live_process, start_of
from rivermark.runtime.supervision.state_file import UnreadableState

LOG = logging.getLogger("rivermark")
PATIENCE: Final = timedelta(seconds=1)
"""How long a held lease is tried again: a run that ends may hold it for a moment."""

JVM_DEATH: Final = timedelta(seconds=20)
"""How long a killed JVM may take to be gone; it may sit in a write that cannot be broken off."""

FAR_SILENCE: Final = timedelta(minutes=2)
"""How long an owner on another machine must have been silent before its lease counts as free."""


class Lease:
    """A kernel lock on `<state root>/leases/<stream>.lock`, with its owner's name beside it.

    The kernel drops the lock when the owner dies, however it dies. The owner's JVM may
    outlive it for a moment and must not write then: who takes the lease over ends it first. On
    a file system shared by several machines, whose locks may be local to each, an owner elsewhere
    counts as alive while its heartbeat is younger than two minutes. The lock belongs to this object
    and ends with it, or with the process; a forked child must not outlive its parent with it.

    An owner that was only paused may wake beside its successor. Each owner therefore claims a
    token, a file that exactly one process can create, and the highest one decides: `check` fails
    for every other owner, which then commits, releases and reports nothing more.
    """

    def __init__(self, state_root: str | Path, stream: str) -> None:
        folder = Path(state_root) / "leases"
        self.stream = stream
        self._state_root = Path(state_root)
        self._lock = state_file.path_for(folder, stream, ".lock")
        self._owner_file = state_file.path_for(folder, stream)
        self._tokens = state_file.path_for(folder, stream, ".tokens")
        self._fd: int | None = None
        self._owner: Owner | None = None
        self.fences = False
        """Whether the owner before is not known, or may still live on another machine, in the
        middle of a batch: the stream's tables have to be fenced against it
        (rivermark/lake/fence.py)."""

    def acquire(self, run_id: str, jvm_pid: int | None = None) -> Self:
        """Take the lease, ending a dead owner's JVM first.

        Raises StreamAlreadyRunning, which names the run and process that hold it; RivermarkError
        where its files cannot be written, and OSError for a full disk.
        """
        if self._fd is not None:
            raise StreamAlreadyRunning(f"stream '{self.stream}' is already held by this object")
        try:
            self._acquire(run_id, jvm_pid)
        except OSError as error:
            if is_disk_full(error):
                raise
            place = error.filename or self._lock
            raise RivermarkError(
                f"the lease of stream '{self.stream}' cannot be taken: {place}: {error.strerror}; "
                "its folder has to be one that this process can write"
            ) from error
        return self

    def _acquire(self, run_id: str, jvm_pid: int | None) -> None:
        self._fd = self._take()
        try:
            # First the token: where another host takes over meanwhile, the claim fails.
            newest = self._newest_token()
            last = self._last_owner()
            if last is None:
                self._succeed_unknown()
            else:
                self._succeed(last)
            self.fences = last is None or (not last.released and last.host != gethostname())
            before = max(newest, last.token if last else 0)
            token = self._take_token((before or self._base()) + 1)
            self._write(
                Owner(
                    token=token,
                    run_id=run_id,
                    pid=os.getpid(),
                    pid_began=psutil.Process().create_time(),
                    pid_start=start_of(os.getpid()),
                    host=gethostname(),
                    at=datetime.now(UTC),
                )
            )
            if jvm_pid is not None:
                self.update(jvm_pid=jvm_pid)
        except BaseException:
            self._drop()
            raise

    @property
    def token(self) -> int:
        """The number of this ownership; 0 while the lease is not held."""
        return 0 if self._owner is None else self._owner.token

    @property
    def current(self) -> bool:
        """True if the lease is held, and no other run has taken the stream over."""
        return self._owner is not None and self._newest_token() == self._owner.token

    def check(self) -> None:
        """Raise LeaseLost where another run has taken the stream over, or the lease is not held."""
        if not self.current:
            successor = self._last_owner()
            if self._owner is not None and successor in (None, self._owner):
                raise LeaseLost(
                    f"stream '{self.stream}': the claim of this run is gone from {self._tokens}, "
                    "which was deleted or put back from a copy; nothing more is written here. "
                    "Start the stream again"
                )
            who = f"run {successor.run_id} on {successor.host}" if successor else "another run"
            raise LeaseLost(
                f"stream '{self.stream}': this run has lost its lease to {who}, which took the "
                "stream over while this one was silent; nothing more is written here, and nothing "
                "of the other run is touched"
            )

    def update(self, *, jvm_pid: int) -> None:
        """Record the JVM of the run, so that a successor can end it."""
        if self._owner is None:
            raise RuntimeError(f"the lease of stream '{self.stream}' is not held")
        self.check()
        began = psutil.Process(jvm_pid).create_time()
        start = start_of(jvm_pid)
        self._write(replace(self._owner, jvm_pid=jvm_pid, jvm_began=began, jvm_start=start))

    def release(self) -> None:
        """Give the lease back; without effect when it is not held, or was lost."""
        try:
            if self._owner is not None and self.current:
                self._write(replace(self._owner, released=True))
        finally:
            self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _take(self) -> int:
        descriptor = state_file.lock(self._lock, PATIENCE.total_seconds())
        if descriptor is None:
            raise StreamAlreadyRunning(self._held_by(self._last_owner()))
        return descriptor

    def _newest_token(self) -> int:
        """The highest token that any owner has claimed, 0 before the first."""
        try:
            return max((int(n) for n in os.listdir(self._tokens) if n.isdecimal()), default=0)  # noqa: PTH208 - in each batch
        except FileNotFoundError:
            return 0

    def _base(self) -> int:
        """The number from which tokens count, the same for all that try at once.

        By the clock: tokens must not start again where their folder was removed.
        """
        base = self._tokens / "base"
        self._tokens.mkdir(exist_ok=True, mode=0o700)
        if not base.exists():
            draft = self._tokens / f"base.{uuid4().hex}"
            draft.write_text(str(time.time_ns() // 1_000_000))
            # Linked, so that it is there with what it says in one step, of the first one alone.
            with suppress(FileExistsError):
                os.link(draft, base)
            draft.unlink()
        return int(base.read_text())

    def _take_token(self, token: int) -> int:
        """Claim the token, which one process alone can, and remove those before it."""
        self._tokens.mkdir(exist_ok=True, mode=0o700)
        try:
            os.close(os.open(self._tokens / str(token), os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            raise StreamAlreadyRunning(self._held_by(self._last_owner())) from None
        if self._newest_token() != token:
            raise StreamAlreadyRunning(self._held_by(self._last_owner()))
        for before in self._tokens.iterdir():
            if before.name.isdecimal() and int(before.name) < token:
                before.unlink(missing_ok=True)
        return token

    def _last_owner(self) -> Owner | None:
        try:
            return state_file.read(self._owner_file, Owner)
        except UnreadableState as problem:
            LOG.warning("stream '%s': who held its lease is not known: %s", self.stream, problem)
            return None

    def _succeed_unknown(self) -> None:
        """Make sure that an owner whose name is lost is gone, by what its heartbeat says.

        Its folder may have been removed under it, so that its lock no longer excludes another.
        """
        beat = HeartbeatStore(self._state_root).latest().get(self.stream)
        if beat is None or beat.state in ENDED:
            return
        if beat.host != gethostname():
            self._check_silence(beat.at, beat)
        elif beat.start and beat.pid != os.getpid() and start_of(beat.pid) == beat.start:
            raise StreamAlreadyRunning(
                f"{self._held_by(beat)}. Its lease is gone from {self._lock.parent}, which was "
                "removed or put back from a copy; end that process first"
            )

    def _check_silence(self, alive: datetime, owner: Owner | Heartbeat) -> None:
        """Refuse to succeed an owner on another machine that was alive a moment ago."""
        silence = datetime.now(UTC) - alive
        if silence >= FAR_SILENCE:
            return
        ahead = (
            f"; that sign of life is {-silence.total_seconds():.0f} s in the future of this "
            "machine's clock: set both by one time server"
            if silence < -FAR_SILENCE
            else ""
        )
        raise StreamAlreadyRunning(self._held_by(owner) + ahead)

    def _held_by(self, owner: Owner | Heartbeat | None) -> str:
        who = f"run {owner.run_id} (pid {owner.pid} on {owner.host})" if owner else "a process"
        return (
            f"stream '{self.stream}' is already run by {who}; "
            "stop that run first, or leave it: it does the work"
        )

    def _succeed(self, owner: Owner | None) -> None:
        """Make sure that the last owner is gone, and its JVM too."""
        if owner is None or owner.released:
            return
        if owner.host != gethostname():
            beat = HeartbeatStore(self._state_root).latest().get(self.stream)
            # Its own heartbeat; until the first one, the moment at which it took the lease.
            alive = beat.at if beat and beat.run_id == owner.run_id else owner.at
            self._check_silence(alive, owner)
            return
        if live_process(owner.pid, owner.pid_began, owner.pid_start) is not None:
            if owner.pid == os.getpid():
                return
            raise StreamAlreadyRunning(self._held_by(owner))
        jvm = live_process(owner.jvm_pid, owner.jvm_began, owner.jvm_start)
        if jvm is None:
            return
        try:
            jvm.kill()
            jvm.wait(timeout=JVM_DEATH.total_seconds())
        except psutil.NoSuchProcess:
            return
        except psutil.TimeoutExpired:
            raise StreamAlreadyRunning(
                f"stream '{self.stream}': run {owner.run_id} is dead but its JVM "
                f"(pid {jvm.pid}) was killed and does not end; end it, then start again"
            ) from None

    def _write(self, owner: Owner) -> None:
        state_file.write(self._owner_file, owner)
        self._owner = owner

    def _drop(self) -> None:
        self._owner = None
        if self._fd is not None:
            # Closing drops the lock. The file stays: a lock on a deleted file excludes no process.
            os.close(self._fd)
            self._fd = None
