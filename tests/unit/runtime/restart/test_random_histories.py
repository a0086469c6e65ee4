"""A model of Dagster and of people, second by second: what should run is started again in time.

Runs are launched by hand beside living ones, wait in the queue, are cancelled there or in life, are
killed, are executed again under the tags of an old one; one or two code locations look at them. A
group that should run and does not for 45 s without a word, or that is started against a person's
will, is a failure. `RIVERMARK_RESTART_HISTORIES` is how many histories are tried.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from rivermark.model.restart_strategy import FixedDelay
from rivermark.runtime.restart.history import RestartHistory
from rivermark.runtime.restart.liveness import ACTIVE, LaunchedRun, RunStatus
from rivermark.runtime.restart.outcome import Group
from rivermark.runtime.restart.plan import plan_restarts
from rivermark.runtime.supervision.desired_state import Desired, DesiredState
from rivermark.runtime.supervision.heartbeat import Beats, Heartbeat

HISTORIES = int(os.environ.get("RIVERMARK_RESTART_HISTORIES", "60"))
MINUTES = 20
MOST = 45
"""Seconds for which a group that should run may be down without a word."""
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
TAXI = Group("taxi", {"taxi/rides": FixedDelay(delay=timedelta(seconds=5))})


@dataclass
class Run:
    """A run as Dagster records it, and its process."""

    id: str
    created: float
    incarnation: int | None
    status: RunStatus = "queued"
    started: float | None = None
    ended: float | None = None
    hosts_at: float = 0.0
    hosting: bool = False
    killed_at: float | None = None
    ends_at: float | None = None

    @property
    def active(self) -> bool:
        return self.status in ACTIVE

    @property
    def serves(self) -> bool:
        return self.hosting and self.killed_at is None and self.status == "started"


@dataclass
class Location:
    """A code location with a restart sensor of its own."""

    offset: int
    history: RestartHistory = field(default_factory=RestartHistory)
    used: set[str] = field(default_factory=set)


class World:
    """Dagster's queue with a pool, the processes, and the people."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now = 0.0
        self.runs: list[Run] = []
        self.beat: Heartbeat | None = None
        self.desired = Desired(state="run", by="ada", at=NOON - timedelta(seconds=1), reason="")
        self.wanted: bool | None = True
        """None: a person's acts contradict each other, and either is right."""
        self.pool = self.chance.choice([1, 1, 2])
        self.locations = [Location(2 * n) for n in range(self.chance.choice([1, 2]))]
        self.log: list[str] = []
        self.quiet_since = 0.0
        self.why = ""

    def at(self, seconds: float) -> datetime:
        return NOON + timedelta(seconds=seconds)

    def note(self, text: str) -> None:
        self.log.append(f"{self.now:7.1f} {text}")

    def live(self, minutes: int) -> None:
        for second in range(60 * minutes):
            self.now = float(second)
            self.dagster()
            self.processes()
            for location in self.locations:
                if (second - location.offset) % 5 == 0:
                    self.tick(location)
            self.check()
            self.now += 0.5
            if second < 60 * minutes - 2 * MOST and self.chance.random() < 0.04:
                self.disturb()

    def dagster(self) -> None:
        """The queue, and the monitor of processes that never said a word."""
        for run in self.runs:
            never_beat = self.beat is None or self.beat.run_id != run.id
            noticed = run.killed_at is not None and self.now - run.killed_at > 10
            if noticed and run.active and never_beat:
                self.end(run, "canceled" if run.status == "canceling" else "failure")
        running = sum(run.active and run.status != "queued" for run in self.runs)
        for run in [r for r in self.runs if r.status == "queued"][: max(0, self.pool - running)]:
            run.status, run.started = "starting", self.now
            run.hosts_at = self.now + self.chance.uniform(4, 12)

    def processes(self) -> None:
        for run in self.runs:
            if run.killed_at is not None or not run.active or run.status == "queued":
                continue
            if run.status == "canceling":
                if run.ends_at is not None and self.now >= run.ends_at:
                    if run.hosting:
                        self.set("paused", "cancelled")
                    self.end(run, "canceled")
                continue
            if run.status == "starting" and self.now > run.hosts_at - 3:
                run.status = "started"
            if not run.hosting and self.now >= run.hosts_at:
                if any(other.serves for other in self.runs):
                    self.end(run, "failure")  # The lease is held.
                    continue
                run.hosting = True
                if run.incarnation is None and self.desired.state != "run":
                    self.set("run", "launched")
                    self.wanted = True
            if run.hosting:
                state = self.desired.state
                self.beats(run, "running" if state == "run" else "stopped")
                if state == "paused":
                    self.end(run, "success")

    def beats(self, run: Run, state: str) -> None:
        self.beat = Heartbeat(
            stream="taxi/rides",
            group="taxi",
            run_id=run.id,
            pid=1,
            host="here",
            at=self.at(self.now),
            state=state,  # type: ignore[arg-type]
            last_progress_at=self.at(self.now),
        )

    def end(self, run: Run, status: RunStatus) -> None:
        run.status, run.ended = status, self.now
        self.note(f"{run.id} ends: {status}")

    def set(self, state: DesiredState, by: str) -> None:
        self.desired = Desired(state=state, by=by, at=self.at(self.now), reason=by)

    def launch(self, incarnation: int | None) -> Run:
        run = Run(f"run-{len(self.runs)}", self.now, incarnation)
        self.runs.append(run)
        return run

    def seen(self) -> list[LaunchedRun]:
        """What the sensor reads: all active ones, and those that ended last."""
        ended = sorted((r for r in self.runs if not r.active), key=lambda r: r.ended or 0)[-5:]
        return [
            LaunchedRun(
                run_id=run.id,
                group="taxi",
                status=run.status,
                created_at=self.at(run.created),
                started_at=None if run.started is None else self.at(run.started),
                ended_at=None if run.ended is None else self.at(run.ended),
                incarnation=run.incarnation,
            )
            for run in (*(r for r in self.runs if r.active), *ended)
        ]

    def tick(self, location: Location) -> None:
        hosts = {run.id: run.killed_at is None and run.active for run in self.runs}
        plan = plan_restarts(
            (TAXI,),
            {"taxi": self.desired},
            Beats({} if self.beat is None else {"taxi/rides": self.beat}, {}),
            self.seen(),
            location.history,
            self.at(self.now),
            process_alive=lambda beat: hosts[beat.run_id],
        )
        location.history = RestartHistory.from_cursor(plan.history.to_cursor())
        self.why = plan.skips.get("taxi", "")
        for reason in plan.pauses.values():
            assert self.wanted is not True, f"paused by the sensor: {reason}"
            self.set("paused", "sensor")
        for run in self.runs:
            if run.id in plan.dead_runs and run.active:
                self.end(run, "canceled" if run.status == "canceling" else "failure")
        for start in plan.requests:
            assert self.wanted is not False, f"started against a person's will: {start}"
            self.note(f"{start.run_key}: {start.cause}")
            if start.run_key not in location.used:  # Dagster launches no key twice.
                location.used.add(start.run_key)
                self.launch(start.number)

    def check(self) -> None:
        if not self.wanted or any(run.serves for run in self.runs):
            self.quiet_since = self.now
        assert self.now - self.quiet_since <= MOST or "starts again" in self.why, self.why

    def disturb(self) -> None:
        self.quiet_since = self.now
        act = self.chance.choice(
            [
                *("launch", "launch", "cancel", "cancel", "kill", "kill"),
                *("pause", "resume", "repeat", "forget"),
            ]
        )
        active = [run for run in self.runs if run.active and run.status != "canceling"]
        if act == "launch":
            self.note(f"{self.launch(None).id} is launched by hand")
            self.wanted = self.wanted or None
        elif act == "repeat" and self.runs:
            self.note(f"{self.launch(self.chance.choice(self.runs).incarnation).id} repeats one")
            self.wanted = self.wanted or None
        elif act == "cancel" and active:
            self.cancel(self.chance.choice(active))
        elif act == "kill":
            for run in [r for r in active if r.status != "queued" and r.killed_at is None][:1]:
                run.killed_at = self.now
                self.note(f"{run.id} is killed")
        elif act == "pause":
            self.set("paused", "ada")
            self.wanted = False
        elif act == "resume" and len(active) == sum(run.active for run in self.runs):
            # While a run is being cancelled, what the person wants would be a matter of seconds.
            self.set("run", "ada")
            self.wanted = True
        elif act == "forget":
            location = self.chance.choice(self.locations)
            numbers = [run.incarnation for run in self.runs if run.incarnation is not None]
            location.history = RestartHistory(used=max(numbers, default=0))
        self.note(f"{act}; wanted: {self.wanted}")

    def cancel(self, run: Run) -> None:
        """Who cancels the run that lives, or the last one there is, wants the group to stop."""
        others = [r for r in self.runs if r.active and r is not run]
        if run.serves or not others:
            self.wanted = False
        elif run.hosting or (run.status != "queued" and not any(r.serves for r in others)):
            self.wanted = None
        self.note(f"{run.id} is cancelled, {run.status}")
        if run.status == "queued":
            self.end(run, "canceled")
        else:
            run.status, run.ended, run.ends_at = "canceling", self.now, self.now + 2


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_n059_what_should_run_is_started_again_whatever_became_of_other_runs(seed: int) -> None:
    world = World(seed)
    try:
        world.live(MINUTES)
    except AssertionError as error:
        error.add_note("\n".join(world.log[-25:]))
        raise
