"""The desired state of a group of streams: running or paused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from rivermark.runtime.supervision import state_file
from rivermark.runtime.supervision.state_file import UnreadableState

DesiredState = Literal["run", "paused"]


@dataclass(frozen=True, kw_only=True)
class Desired:
    """The desired state of one group: since when (UTC), set by whom and why.

    `problem` says why the stored state cannot be read. Such a group is paused until it is set
    again: to start a stream that was stopped on purpose is worse than to wait.
    """

    state: DesiredState
    by: str
    at: datetime | None
    reason: str
    problem: str | None = None

    def paused(self, since: datetime | None = None) -> bool:
        """True if a live run has to stop: the group was paused, after that moment where given.

        A stored state that cannot be read is no reason to stop what runs; the sensor reports it.
        """
        if self.state != "paused" or self.problem is not None:
            return False
        return since is None or (self.at is not None and self.at > since)


NEVER_SET = Desired(state="paused", by="nobody", at=None, reason="never set to run")


class DesiredStore:
    """The desired states of a deployment, in `<state root>/desired`. They survive every process."""

    def __init__(self, state_root: str | Path) -> None:
        self._folder = Path(state_root) / "desired"

    def get(self, group: str) -> Desired:
        """The desired state of the group; paused where it was never set."""
        try:
            desired = state_file.read(state_file.path_for(self._folder, group), Desired)
        except UnreadableState as problem:
            return Desired(
                state="paused", by="nobody", at=None, reason="unreadable", problem=str(problem)
            )
        return desired or NEVER_SET

    def set(self, group: str, state: DesiredState, *, by: str, reason: str) -> Desired:
        """Store the desired state; it holds until it is set again."""
        desired = Desired(state=state, by=by, at=datetime.now(UTC), reason=reason)
        state_file.write(state_file.path_for(self._folder, group), desired)
        return desired

    def all(self) -> dict[str, Desired]:
        """Every state that was ever set, by group."""
        names = [state_file.name_of(p) for p in sorted(self._folder.glob("[a-z]*.json"))]
        return {name: self.get(name) for name in names}
