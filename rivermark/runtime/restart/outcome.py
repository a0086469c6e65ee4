"""Outcome of a tick of the restart sensor for a group: a run to ask for, or why not, and alerts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rivermark.model.restart_strategy import DEFAULT_STRATEGY, RestartStrategy
from rivermark.model.topology import Topology
from rivermark.runtime.restart.history import GroupMemory
from rivermark.runtime.restart.outbox import Trouble


@dataclass(frozen=True)
class Group:
    """The streams that share a run, each with its restart strategy."""

    name: str
    strategies: Mapping[str, RestartStrategy]


def groups_of(topology: Topology) -> tuple[Group, ...]:
    """The groups of a deployment, with the default strategy where a stream declares none."""
    return tuple(
        Group(name, {s.name: s.restart or DEFAULT_STRATEGY for s in streams})
        for name, streams in topology.groups().items()
    )


@dataclass(frozen=True, kw_only=True)
class Start:
    """A run to ask for. The key is new for each incarnation: a used key never launches again."""

    group: str
    number: int
    cause: str

    @property
    def run_key(self) -> str:
        """The same for two deciders with the same history, so that only one run comes."""
        return f"{self.group}:{self.number}"


@dataclass(frozen=True, kw_only=True)
class Alert:
    """Something that a person must see once. `incident` identifies the trouble.

    `cause` is the same for all that one thing stops, such as a damaged file. `blamed` are the
    causes that led to it: where all of them are known, it is nothing new.
    """

    incident: str
    group: str
    message: str
    stream: str | None = None
    cause: str = ""
    blamed: tuple[str, ...] = ()

    @property
    def trouble(self) -> Trouble:
        """The message of it in the outbox."""
        return Trouble(
            cause=self.cause or self.incident,
            about=f"'{self.stream or self.group}'",
            message=self.message,
            within=self.blamed,
        )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The decision for one group."""

    memory: GroupMemory
    start: Start | None = None
    skip: str = ""
    dead_runs: dict[str, str] = field(default_factory=dict)
    pause: str | None = None
    alerts: tuple[Alert, ...] = ()
    again_at: datetime | None = None
