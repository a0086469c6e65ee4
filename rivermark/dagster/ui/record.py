"""The record that a supervisor leaves for its successor, and the lock of the only one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rivermark.dagster.ui.processes import Living
from rivermark.runtime.supervision import state_file
from rivermark.runtime.supervision.state_file import UnreadableState


@dataclass(frozen=True, kw_only=True)
class Record:
    """Facts for a successor of this supervisor: address of the page, and what runs."""

    host: str
    port: int
    supervisor: Living
    services: dict[str, Living]


class RecordFile:
    """The record of a deployment's supervisor, and the lock that lets there be one supervisor."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.path = state / "ui" / "supervisor.json"
        self._fd: int | None = None

    def take(self, seconds: float) -> bool:
        """Take the lock; a supervisor that was killed a moment ago may hold it a little longer."""
        self._fd = state_file.lock(self.path.with_suffix(".lock"), seconds)
        return self._fd is not None

    def read(self) -> Record | None:
        """The last record; none where there is no readable one."""
        try:
            return state_file.read(self.path, Record)
        except UnreadableState:
            return None

    def write(self, record: Record) -> None:
        """Replace the record."""
        state_file.write(self.path, record)

    def remove(self) -> None:
        """Forget it: everything has ended in order."""
        self.path.unlink(missing_ok=True)
