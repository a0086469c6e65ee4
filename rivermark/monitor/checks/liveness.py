"""Liveness of a stream that should run: its last heartbeat and its last batch."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Final

from rivermark.model.check import CheckResult
from rivermark.model.stream import AnyStream, Stream
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.heartbeat import (
    ENDED,
    FAILURES,
    REPEATED,
    WAITING,
    HeartbeatStore,
)
from rivermark.settings import Settings

ALIVE: Final = "is_alive"
"""The check that the restart sensor fails when it gives up, and that a stopped stream fails."""

SILENCE: Final = timedelta(minutes=3)
"""A restart takes up to two minutes (a tick, a delay, the driver's start); later a person is
needed."""

OLDER_CODE: Final = "runs_older_code"
"""Key in `numbers`, there only where the code in the repository is not what runs."""

WITHOUT_PROGRESS: Final = timedelta(minutes=10)
"""For streams that declare no `fresh_within`, while input waits."""


def alive(settings: Settings, stream: AnyStream, now: datetime) -> CheckResult:
    """True if the stream sends heartbeats and makes progress, if its group's desired state is run.

    Raises:
        UnreadableState: Its heartbeat cannot be read, so nothing is known.
    """
    result = partial(CheckResult, name=ALIVE, severity="critical")
    desired = DesiredStore(settings.state).get(stream.group)
    beat = HeartbeatStore(settings.state).get(stream.name)
    if desired.state == "paused":
        return result(passed=True, observed=f"paused: {desired.reason} ({desired.by})")
    since = desired.at or now
    if beat is None or beat.state in ENDED:
        stopped = now - max(since, beat.at) if beat else now - since
        why = f"; it ended with: {beat.error}" if beat and beat.error else ""
        return result(
            passed=stopped <= SILENCE,
            observed=f"should run and has not for {_seconds(stopped)}{why}",
            numbers={"silent_seconds": stopped.total_seconds()},
        )
    silence = now - beat.at
    numbers: dict[str, int | float] = {"silent_seconds": silence.total_seconds()}
    if silence > SILENCE:
        return result(
            passed=False,
            observed=f"last heartbeat {_seconds(silence)} ago, from run {beat.run_id}",
            numbers=numbers,
        )
    failures = beat.numbers.get(FAILURES, 0)
    if failures >= REPEATED:
        return result(
            passed=False,
            observed=f"failed {failures:.0f} times in a row, the last time with: {beat.error}",
            numbers=numbers | {FAILURES: failures},
        )
    waiting, progress_at = beat.numbers.get(WAITING, 0), beat.last_progress_at
    idle = now - progress_at if progress_at else timedelta(0)
    waited = now - beat.waiting_since if waiting and beat.waiting_since else timedelta(0)
    upgrade = f"rivermark upgrade {stream.name}" if _is_older(beat.code, stream) else ""
    stale = stream.fresh_within is not None and idle > stream.fresh_within
    return result(
        passed=not stale and waited <= (stream.fresh_within or WITHOUT_PROGRESS),
        observed=(
            f"alive in run {beat.run_id}; last batch "
            f"{f'{_seconds(idle)} ago' if progress_at else 'not yet'}, {waiting:,.0f} waiting"
            + (f"; it runs older code than the repository: {upgrade}" if upgrade else "")
        ),
        numbers=numbers
        | {"seconds_since_progress": idle.total_seconds(), WAITING: waiting}
        | ({OLDER_CODE: 1} if upgrade else {}),
    )


def _is_older(code: str | None, stream: AnyStream) -> bool:
    """True if the code that runs is known, and is not that of the repository."""
    if code is None or not isinstance(stream, Stream):
        return False
    # Here, because commands must not wait for modules of process functions.
    from rivermark.runtime.code_version import code_of

    return code != code_of(stream)


def _seconds(span: timedelta) -> str:
    return f"{span.total_seconds():,.0f} s"
