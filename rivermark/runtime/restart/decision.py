"""The decision about one tick of the restart sensor, group by group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from rivermark.runtime.restart.history import GroupMemory
from rivermark.runtime.restart.liveness import (
    ACTIVE,
    LaunchedRun,
    Life,
    Patience,
    ProcessAlive,
    life_of,
)
from rivermark.runtime.restart.outcome import Alert, Group, Outcome, Start
from rivermark.runtime.supervision.desired_state import Desired
from rivermark.runtime.supervision.heartbeat import (
    FAILURES,
    REPEATED,
    Beats,
    Heartbeat,
)

PATIENCE: Final = Patience()


@dataclass(frozen=True)
class Decision:
    """The rules for one group at one moment."""

    group: Group
    desired: Desired
    beats: Beats
    now: datetime
    process_alive: ProcessAlive

    def outcome(self, runs: Sequence[LaunchedRun], memory: GroupMemory) -> Outcome:
        """Start, wait or leave alone; `runs` are newest first."""
        memory = memory.under(self.desired.at)
        lives = {r.run_id: self._life(r) for r in runs if r.status in ACTIVE}
        dead = {run: life.why for run, life in lives.items() if life.state == "dead"}
        outcome = self._decide(runs, memory, lives)
        return replace(outcome, dead_runs=dead, alerts=(*outcome.alerts, *self._unreadable()))

    def _decide(
        self, runs: Sequence[LaunchedRun], memory: GroupMemory, lives: Mapping[str, Life]
    ) -> Outcome:
        # The one that lives, and not one that waits behind it.
        serving = min(
            (life for life in lives.values() if life.state != "dead"),
            key=lambda life: (life.state == "queued", life.state == "starting"),
            default=None,
        )
        if serving is not None:
            trouble = serving.state in ("silent", "stalled")
            alerts = [self._alert(serving.state, serving.why)] if trouble else []
            alerts += self._failures(run for run, life in lives.items() if life is serving)
            return Outcome(
                memory=memory, skip=serving.why, alerts=tuple(alerts), again_at=serving.dead_at
            )
        if self.desired.state == "paused":
            return Outcome(memory=memory, skip=f"paused: {self.desired.reason} ({self.desired.by})")
        last = self._last(runs, lives)
        numbers = [r.incarnation for r in runs if r.incarnation is not None]
        number = max([memory.number, *numbers]) + 1
        if self._awaited(memory, numbers):
            return Outcome(memory=memory, skip="already starting: asked for a moment ago")
        if last is None or self._requested_since(self._spoken(last, lives), memory):
            return self._start(memory, number, (), f"asked for by {self.desired.by}")
        if last.status in ("canceled", "canceling"):
            # Who cancels the only run wants its streams to stop, also when it never started.
            reason = f"run {last.run_id} was cancelled"
            return Outcome(memory=memory, skip=f"paused: {reason}", pause=reason)
        return self._again(last, memory, number, lives)

    def _last(self, runs: Sequence[LaunchedRun], lives: Mapping[str, Life]) -> LaunchedRun | None:
        """The run whose end counts: the last one to end, and not the last one to be launched.

        A run that was cancelled before it lived says nothing where another one lived then, by all
        that was known: that other run is how the group ended.
        """
        counting = [run for run in runs if not self._cancelled_beside_another(run, runs)]
        return max(
            counting, key=lambda run: (self._ended(run, lives), run.created_at), default=None
        )

    def _cancelled_beside_another(self, run: LaunchedRun, runs: Sequence[LaunchedRun]) -> bool:
        if run.status not in ("canceled", "canceling") or self._beats_of(run.run_id):
            return False
        cancelled_at = run.ended_at or run.created_at
        return any(
            other.created_at <= cancelled_at <= (other.ended_at or self.now)
            for other in runs
            if other is not run and (other.started_at or self._beats_of(other.run_id))
        )

    def _again(
        self, last: LaunchedRun, memory: GroupMemory, number: int, lives: Mapping[str, Life]
    ) -> Outcome:
        beats = self._beats_of(last.run_id)
        failed = [b for b in beats if b.state == "failed"]
        # Where others ran until the run ended, it ended by something else than these failures.
        others = [b.stream for b in beats if b.state != "failed"]
        beyond = [b for b in failed if not b.restartable]
        if beyond and not others:
            why = (
                f"not started again, because a restart cannot mend it: stream '{beyond[0].stream}' "
                f"failed with: {beyond[0].error}; mend the cause, then set the group to run"
            )
            return self._refused(memory, "beyond_restart", why, beyond)
        given_up = [b for b in failed if b.given_up]
        if given_up and not others:
            first = given_up[0]
            why = (
                f"given up: stream '{first.stream}' failed {first.numbers.get(FAILURES, 0):.0f} "
                f"times in a row in run {last.run_id}, the last time with: {first.error}; mend the "
                "cause, then set the group to run"
            )
            return self._refused(memory, "given_up", why, given_up)
        died_at = self._ended(last, lives)
        starts = memory.starts or (last.created_at,)
        blamed = [b.stream for b in failed if b.restartable and not b.given_up]
        times = self._next_starts(blamed or others, starts, died_at)
        if None in times and others:
            times = self._next_starts(others, starts, died_at)
        if None in times:
            why = (
                f"given up after {len(starts)} starts, the last as run {last.run_id}; see that "
                "run's error, then set the group to run"
            )
            return self._refused(memory, "given_up", why, [b for b in failed if b.restartable])
        due = max(time for time in times if time is not None)
        if due > self.now:
            skip = f"starts again at {due:%H:%M:%S} UTC"
            return Outcome(memory=memory, skip=skip, again_at=due)
        cause = lives[last.run_id].why if last.run_id in lives else f"run {last.run_id} ended"
        return self._start(memory, number, starts, cause)

    def _refused(
        self, memory: GroupMemory, kind: str, why: str, blamed: Sequence[Heartbeat]
    ) -> Outcome:
        alert = replace(self._alert(kind, why), blamed=tuple(_cause_of(beat) for beat in blamed))
        return Outcome(memory=memory, skip=why, alerts=(alert,))

    def _next_starts(
        self, streams: Sequence[str], starts: Sequence[datetime], died_at: datetime
    ) -> list[datetime | None]:
        """By the strategies of these streams, or of all: the most careful of them decides."""
        return [
            self.group.strategies[stream].next_start(starts, died_at)
            for stream in streams or self.group.strategies
        ]

    def _failures(self, run_ids: Iterable[str]) -> list[Alert]:
        """One alert a stream that a live run has given up, or starts again and again.

        None of a failure that ends the run and that the next one heals, as of a lost session.
        """
        alerts = []
        for beat in (b for run_id in run_ids for b in self._beats_of(run_id)):
            ends_run = beat.restartable and not beat.given_up
            is_ending = ends_run and self.now - beat.at <= PATIENCE.start
            if beat.state == "failed" and not is_ending:
                then = "the others go on; mend the cause, then pause the group and resume it"
            elif beat.state != "failed" and beat.numbers.get(FAILURES, 0) >= REPEATED:
                then = f"it has failed {beat.numbers[FAILURES]:.0f} times and is started again"
            else:
                continue
            alerts.append(
                Alert(
                    incident=_failure_of(beat.stream),
                    group=self.group.name,
                    stream=beat.stream,
                    cause=_cause_of(beat),
                    message=f"stream '{beat.stream}' failed with: {beat.error}; {then}",
                )
            )
        return alerts

    def _start(
        self, memory: GroupMemory, number: int, starts: tuple[datetime, ...], cause: str
    ) -> Outcome:
        return Outcome(
            memory=memory.started(number, starts, self.now),
            start=Start(group=self.group.name, number=number, cause=cause),
        )

    def _awaited(self, memory: GroupMemory, numbers: Sequence[int]) -> bool:
        """Returns True if a start was asked for whose run has not been recorded yet."""
        if not memory.starts or memory.number in numbers:
            return False
        return abs(self.now - memory.starts[-1]) <= PATIENCE.start

    def _requested_since(self, spoken: datetime, memory: GroupMemory) -> bool:
        """Returns True if a person asked for the group after its last run had ended.

        Not by a moment in the future, under which the group was started already: the clock was set
        back since, and each failure would seem to lie before the request.
        """
        desired_at = self.desired.at or self.now
        return spoken <= desired_at and not (desired_at > self.now and memory.starts)

    def _spoken(self, run: LaunchedRun, lives: Mapping[str, Life]) -> datetime:
        """The time since which a person may cancel the record of a run that is dead."""
        cancelled = run.status in ("canceled", "canceling")
        return (run.ended_at if cancelled else None) or self._ended(run, lives)

    def _ended(self, run: LaunchedRun, lives: Mapping[str, Life]) -> datetime:
        """The time at which the run was last alive: the pause before a restart counts from there.

        A record of a killed run is corrected only when a sensor notices, up to a minute later.
        """
        life = lives.get(run.run_id)
        noticed = life.died_at if life else run.ended_at
        beats = [beat.at for beat in self._beats_of(run.run_id)]
        known = [at for at in (noticed, max(beats, default=None)) if at is not None]
        return min(*known, self.now) if known else run.created_at

    def _life(self, run: LaunchedRun) -> Life:
        beats = self._beats_of(run.run_id)
        if not beats and any(s in self.beats.unreadable for s in self.group.strategies):
            # Silence proves nothing while a heartbeat cannot be read; the lease fences the rest.
            return Life(state="alive", why=f"run {run.run_id}: its heartbeat cannot be read")
        return life_of(run, beats, self.now, process_alive=self.process_alive, patience=PATIENCE)

    def _beats_of(self, run_id: str) -> list[Heartbeat]:
        beats = (self.beats.latest.get(stream) for stream in self.group.strategies)
        return [beat for beat in beats if beat is not None and beat.run_id == run_id]

    def _unreadable(self) -> tuple[Alert, ...]:
        """One alert a damaged file."""
        files = [
            Alert(
                incident=f"unreadable:{stream}",
                group=self.group.name,
                stream=stream,
                message=f"the heartbeat of '{stream}' cannot be read: {why}",
            )
            for stream, why in self.beats.unreadable.items()
            if stream in self.group.strategies
        ]
        if self.desired.problem:
            files.append(self._alert("wish_unreadable", self.desired.problem))
        return tuple(files)

    def _alert(self, kind: str, message: str) -> Alert:
        name = self.group.name
        return Alert(incident=f"{kind}:{name}", group=name, message=f"group '{name}': {message}")


def _failure_of(stream: str) -> str:
    return f"failed:{stream}"


def _cause_of(beat: Heartbeat) -> str:
    return beat.cause or _failure_of(beat.stream)
