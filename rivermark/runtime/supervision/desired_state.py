"""What a person wants of a group of streams: that it runs, or that it rests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from rivermark.runtime.supervision import state_file
from rivermark.runtime.supervision.state_file import UnreadableState

Wish = Literal["run", "paused"]


@dataclass(frozen=True, kw_only=True)
class Desired:
    """The wish for one group: which, whose, since when (UTC) and why.

    `problem` says why the stored wish cannot be read. Such a group rests until somebody sets it
    again: to start a stream that was stopped on purpose is worse than to wait.
    """

    state: Wish
    by: str
    at: datetime | None
    reason: str
    problem: str | None = None


NEVER_SET = Desired(state="paused", by="nobody", at=None, reason="never set to run")


class DesiredStore:
    """The wishes of a deployment, in `<state root>/desired`. They survive every process."""

    def __init__(self, state_root: str | Path) -> None:
        """Remember the folder; it is made by the first wish."""
        self._folder = Path(state_root) / "desired"

    def get(self, group: str) -> Desired:
        """The wish for the group; paused where nobody ever set one."""
        try:
            found = state_file.read(state_file.path_for(self._folder, group), Desired)
        except UnreadableState as problem:
            return Desired(
                state="paused", by="nobody", at=None, reason="unreadable", problem=str(problem)
            )
        return found or NEVER_SET

    def set(self, group: str, state: Wish, *, by: str, reason: str) -> Desired:
        """Write the wish down; it holds until the next one."""
        wish = Desired(state=state, by=by, at=datetime.now(UTC), reason=reason)
        state_file.write(state_file.path_for(self._folder, group), wish)
        return wish

    def all(self) -> dict[str, Desired]:
        """Every wish ever set, by group."""
        names = [state_file.name_of(p) for p in sorted(self._folder.glob("[a-z]*.json"))]
        return {name: self.get(name) for name in names}
