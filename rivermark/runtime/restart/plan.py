"""Groups to start now: a pure decision over desired states, heartbeats and runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rivermark.runtime.restart.decision import Decision
from rivermark.runtime.restart.history import RestartHistory
from rivermark.runtime.restart.liveness import (
    LaunchedRun,
    ProcessAlive,
)
from rivermark.runtime.restart.outbox import Trouble
from rivermark.runtime.restart.outcome import Alert, Group, Outcome, Start
from rivermark.runtime.supervision.desired_state import NEVER_SET, Desired
from rivermark.runtime.supervision.heartbeat import (
    Beats,
    host_alive,
)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The work to do now. `dead_runs` are records to be corrected before anything is started.

    `alerts` are those that are new, `troubles` all that there are, and `over` the streams about
    which there was one, with what is said of their groups now. `again_at` is the earliest moment at
    which the passing of time alone may change the plan: a process that is gone counts as dead then,
    or a pause before a start is over.
    """

    requests: tuple[Start, ...] = ()
    skips: dict[str, str] = field(default_factory=dict)
    dead_runs: dict[str, str] = field(default_factory=dict)
    pauses: dict[str, str] = field(default_factory=dict)
    alerts: tuple[Alert, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    over: tuple[tuple[str, str], ...] = ()
    history: RestartHistory = field(default_factory=RestartHistory)
    again_at: datetime | None = None


def plan_restarts(
    groups: Sequence[Group],
    desired: Mapping[str, Desired],
    beats: Beats,
    runs: Sequence[LaunchedRun],
    history: RestartHistory,
    now: datetime,
    *,
    process_alive: ProcessAlive = host_alive,
) -> Plan:
    """Decide for every group by itself, so that trouble with one never holds up another.

    `runs` are the continuous runs of these groups in any order: all active ones, and at least those
    of each group that ended last. The cost of a decision depends on their number, not on the age of
    a stream.
    """
    outcomes = {
        group.name: Decision(
            group,
            desired.get(group.name, NEVER_SET),
            beats,
            now,
            process_alive,
        ).outcome(
            sorted(
                (r for r in runs if r.group == group.name),
                key=lambda r: r.created_at,
                reverse=True,
            ),
            history.of(group.name),
        )
        for group in groups
    }
    alerts = [a for v in outcomes.values() for a in v.alerts]
    open_now = {a.incident for a in alerts}
    return Plan(
        requests=tuple(v.start for v in outcomes.values() if v.start),
        skips={g: v.skip for g, v in outcomes.items() if not v.start},
        dead_runs={run: why for v in outcomes.values() for run, why in v.dead_runs.items()},
        pauses={g: v.pause for g, v in outcomes.items() if v.pause},
        alerts=tuple(a for a in alerts if a.incident not in history.told),
        troubles=tuple(a.trouble for a in alerts),
        over=tuple(_over(groups, history, outcomes)),
        history=RestartHistory(
            groups={g: v.memory for g, v in outcomes.items()},
            told=tuple(sorted(open_now)),
            used=max([history.used, *(v.memory.number for v in outcomes.values())]),
        ),
        again_at=min((v.again_at for v in outcomes.values() if v.again_at), default=None),
    )


def _over(
    groups: Sequence[Group], history: RestartHistory, outcomes: Mapping[str, Outcome]
) -> Iterator[tuple[str, str]]:
    """The streams of reported incidents, in groups with which nothing is wrong any more."""
    names = {incident.partition(":")[2] for incident in history.told}
    for group in groups:
        outcome = outcomes[group.name]
        if not outcome.alerts:
            for stream in group.strategies:
                if not names.isdisjoint((stream, group.name)):
                    yield stream, outcome.skip or "it is started"
