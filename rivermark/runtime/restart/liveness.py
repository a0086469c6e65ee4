"""Liveness of a launched run, by heartbeats and processes and not by its record alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from rivermark.runtime.supervision.heartbeat import ENDED, WAITING, Heartbeat

RunStatus = Literal["queued", "starting", "started", "canceling", "canceled", "success", "failure"]

ACTIVE: Final = frozenset({"queued", "starting", "started", "canceling"})


@dataclass(frozen=True, kw_only=True)
class LaunchedRun:
    """The record of a run that hosts a group continuously. Times are UTC.

    `started_at` is when it got its process, and `ended_at` of one that is being cancelled when that
    was requested. `incarnation` is the number under which the sensor requested it; None where a
    person did.
    """

    run_id: str
    group: str
    status: RunStatus
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    incarnation: int | None = None


@dataclass(frozen=True, kw_only=True)
class Patience:
    """The patience with each kind of silence before it means something.

    `start`: from requesting a run to its first heartbeat; a driver needs 10-25 s on two busy cores.
    `gone`: after the last heartbeat of a process that is no longer there; `ending`: if that was its
    last word, since the record of a run follows its end. `silent`: of a process that is there.
    `far`: of one on another machine. `stalled`: without a batch while input waits.
    """

    start: timedelta = timedelta(minutes=2)
    gone: timedelta = timedelta(seconds=2)
    ending: timedelta = timedelta(seconds=10)
    silent: timedelta = timedelta(minutes=1)
    far: timedelta = timedelta(minutes=2)
    stalled: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True)
class Life:
    """The state of one run, and why. `died_at` is the last moment at which it was seen alive.

    `dead_at` is when a process that is gone counts as dead, if nothing is heard of it until then.
    """

    state: Literal["queued", "starting", "alive", "silent", "stalled", "ending", "dead"]
    why: str
    died_at: datetime | None = None
    dead_at: datetime | None = None


ProcessAlive = Callable[[Heartbeat], bool | None]


def life_of(
    run: LaunchedRun,
    beats: Sequence[Heartbeat],
    now: datetime,
    *,
    process_alive: ProcessAlive,
    patience: Patience,
) -> Life:
    """The state of an active run, from the heartbeats that carry its id.

    A record may say 'started' after a hard kill, which leaves no process to correct it.
    """
    if run.status == "queued":
        return Life(state="queued", why=f"run {run.run_id} waits in the queue for a place")
    if not beats:
        requested_at = run.started_at or run.created_at
        if now - requested_at <= patience.start:
            return Life(state="starting", why=f"already starting, as run {run.run_id}")
        why = f"run {run.run_id} gave no sign of life within {patience.start}"
        return Life(state="dead", why=why, died_at=requested_at)
    last = max(beats, key=lambda beat: beat.at)
    # A beat from the future was written before the clock was set back: it says nothing of silence.
    silence, ahead = now - last.at, last.at - now
    alive = process_alive(last)
    ended = all(beat.state in ENDED for beat in beats)
    gone = patience.ending if ended else patience.gone
    if alive is False and max(silence, ahead) > gone:
        why = f"run {run.run_id}: its process (pid {last.pid} on {last.host}) is gone"
        return Life(state="dead", why=why, died_at=min(last.at, now))
    if alive is None and silence > patience.far:
        why = f"run {run.run_id} on {last.host}: no sign of life for {_seconds(silence)}"
        return Life(state="dead", why=why, died_at=last.at)
    dead_at = last.at + gone if alive is False else None
    if run.status == "canceling":
        return Life(state="ending", why=f"run {run.run_id} is being cancelled", dead_at=dead_at)
    if ended:
        return Life(state="ending", why=f"run {run.run_id} is ending", dead_at=dead_at)
    if alive is None and ahead > patience.far:
        why = (
            f"run {run.run_id}: the clock of {last.host} is {_seconds(ahead)} ahead of this "
            "machine's, so that its silence cannot be told; set both by one time server"
        )
        return Life(state="silent", why=why)
    if alive and silence > patience.silent:
        why = (
            f"run {run.run_id}: its process (pid {last.pid}) is there but has said nothing for "
            f"{_seconds(silence)}; look at it, then cancel the run or kill that process"
        )
        return Life(state="silent", why=why)
    stalled = [b for b in beats if _stands_still(b, now, patience)]
    if stalled:
        names = ", ".join(sorted(b.stream for b in stalled))
        why = (
            f"run {run.run_id} beats, but for {patience.stalled} no batch of {names} has ended "
            "while input waits; look at the step's log and the Spark page, then cancel the run"
        )
        return Life(state="stalled", why=why)
    return Life(state="alive", why=f"alive in run {run.run_id}", dead_at=dead_at)


def _stands_still(beat: Heartbeat, now: datetime, patience: Patience) -> bool:
    if beat.state in ENDED or not beat.numbers.get(WAITING, 0) > 0:
        return False
    # Not since its last batch: that may be hours old where no input came.
    return beat.waiting_since is not None and now - beat.waiting_since > patience.stalled


def _seconds(silence: timedelta) -> str:
    return f"{silence.total_seconds():.0f} s"
