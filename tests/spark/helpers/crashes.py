"""Crashes at a chosen commit: the process is not killed, but nothing after the commit happens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from rivermark.lake.batch_writer import TableWriter
from rivermark.model.stream import AnyStream
from rivermark.runtime.query.append import EMPTY_BATCHES
from rivermark.runtime.query.base import QueryHost
from rivermark.settings import Settings


class CrashError(Exception):
    """The end of a run, made by a test."""


def crash_once(patch: pytest.MonkeyPatch, table: str, *, before: bool = False) -> None:
    """Let the next commit to the table be the last thing that happens, or not even happen."""
    crashed: list[str] = []

    def crashing(commit: Callable[..., bool]) -> Callable[..., bool]:
        def append(self: TableWriter, *args: Any, **more: Any) -> bool:
            if self.table.name != table or crashed:
                return commit(self, *args, **more)
            crashed.append(table)
            if not before:
                commit(self, *args, **more)
            raise CrashError(f"crashed at {table}")

        return append

    for name in ("append_once", "append_files_once"):
        patch.setattr(TableWriter, name, crashing(getattr(TableWriter, name)))


def forget_last_commit(settings: Settings, stream: AnyStream) -> int:
    """Make the checkpoint forget that its last batch was done, as a kill right before does."""
    commits = Path(settings.lake().checkpoint(stream.name, 0)) / "commits"
    last = max(int(p.name) for p in commits.iterdir() if p.name.isdigit())
    for path in (commits / str(last), commits / f".{last}.crc"):
        path.unlink(missing_ok=True)
    return last


def without_closing_batches(patch: pytest.MonkeyPatch) -> None:
    """Leave checkpoints as a kill between the last batch of rows and the empty one does."""
    start = QueryHost.start

    def started(self: QueryHost, *, bounded: bool) -> StreamingQuery:
        self.conf[EMPTY_BATCHES] = "false"
        return start(self, bounded=bounded)

    patch.setattr(QueryHost, "start", started)
