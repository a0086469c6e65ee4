"""Whether a stream that should run does: its last sign of life and its last batch."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from rivermark.model.stream import AnyStream
from rivermark.monitor.checks.check import Answer
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.heartbeat import ENDED, WAITING, HeartbeatStore
from rivermark.settings import Settings

SILENCE: Final = timedelta(minutes=3)
"""A restart takes up to two minutes: a tick, a delay, a driver's start. Then somebody must look."""

WITHOUT_PROGRESS: Final = timedelta(minutes=10)
"""For streams that declare no `fresh_within`, while input waits."""


def alive(settings: Settings, stream: AnyStream, now: datetime) -> Answer:
    """Whether the stream beats and moves, if its group is meant to run.

    Raises UnreadableState when its heartbeat cannot be read: then nothing is known.
    """
    wish = DesiredStore(settings.state).get(stream.group)
    beat = HeartbeatStore(settings.state).get(stream.name)
    if wish.state == "paused":
        return Answer(holds=True, sentence=f"rests: {wish.reason} ({wish.by})")
    since = wish.at or now
    if beat is None or beat.state in ENDED:
        waited = now - max(since, beat.at) if beat else now - since
        why = f"; it ended with: {beat.error}" if beat and beat.error else ""
        return Answer(
            holds=waited <= SILENCE,
            sentence=f"should run and has not for {_seconds(waited)}{why}",
            numbers={"silent_seconds": waited.total_seconds()},
        )
    silence = now - beat.at
    numbers: dict[str, int | float] = {"silent_seconds": silence.total_seconds()}
    if silence > SILENCE:
        return Answer(
            holds=False,
            sentence=f"last sign of life {_seconds(silence)} ago, from run {beat.run_id}",
            numbers=numbers,
        )
    waiting = beat.numbers.get(WAITING, 0)
    moved = beat.last_progress_at
    bound = stream.fresh_within or WITHOUT_PROGRESS
    still = now - moved if moved else timedelta(0)
    numbers |= {"seconds_since_progress": still.total_seconds(), WAITING: waiting}
    must_move = waiting > 0 or stream.fresh_within is not None
    return Answer(
        holds=not (must_move and still > bound),
        sentence=(
            f"alive in run {beat.run_id}; last batch "
            f"{f'{_seconds(still)} ago' if moved else 'not yet'}, {waiting:,.0f} waiting"
        ),
        numbers=numbers,
    )


def _seconds(span: timedelta) -> str:
    return f"{span.total_seconds():,.0f} s"
